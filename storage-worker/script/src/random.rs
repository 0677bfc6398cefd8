//! `math.random`: the same sequence everywhere, by the 48-bit generator of C's `lrand48`.

use crate::lua::{Function, lua_State, raise_argument};
use crate::vm::state;
use mlua_sys as ffi;
use std::ffi::c_int;

const FACTOR: u64 = 0x5_DEEC_E66D;
const SUMMAND: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// Fractions are made with this one, which is why none is 1.
const LARGEST: u32 = 0x7FFF_FFFF;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rand48(u64);

impl Default for Rand48 {
    fn default() -> Self {
        Self(0x1234_ABCD_330E)
    }
}

impl Rand48 {
    fn seed(&mut self, seed: i32) {
        self.0 = u64::from(seed as u32) << 16 | 0x330E;
    }

    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(FACTOR).wrapping_add(SUMMAND) & MASK;
        (self.0 >> 17) as u32
    }
}

pub(crate) const FUNCTIONS: &[(&str, Function)] = &[("random", random), ("randomseed", seed)];

/// An argument as C's `int`: the bits above are lost.
unsafe fn integer(l: *mut lua_State, at: c_int) -> c_int {
    ffi::luaL_checkinteger(l, at) as c_int
}

unsafe extern "C-unwind" fn random(l: *mut lua_State) -> c_int {
    let fraction = f64::from(state(l).random.next() % LARGEST) / f64::from(LARGEST);
    let number = match ffi::lua_gettop(l) {
        0 => fraction,
        1 => {
            let above = integer(l, 1);
            if above < 1 {
                raise_argument(l, 1, c"interval is empty");
            }
            (fraction * f64::from(above)).floor() + 1.0
        }
        2 => {
            let (below, above) = (integer(l, 1), integer(l, 2));
            if below > above {
                raise_argument(l, 2, c"interval is empty");
            }
            let count = above.wrapping_sub(below).wrapping_add(1);
            (fraction * f64::from(count)).floor() + f64::from(below)
        }
        _ => crate::lua::raise_here(l, b"wrong number of arguments"),
    };
    ffi::lua_pushnumber(l, number);
    1
}

unsafe extern "C-unwind" fn seed(l: *mut lua_State) -> c_int {
    let seed = ffi::luaL_checkinteger(l, 1);
    state(l).random.seed(seed as i32);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_lrand48() {
        let mut random = Rand48::default();
        random.seed(0);
        let numbers: Vec<u32> = (0..3).map(|_| random.next()).collect();
        assert_eq!(numbers, [366_850_414, 1_610_402_240, 206_956_554]);
    }
}
