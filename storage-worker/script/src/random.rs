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

unsafe extern "C-unwind" fn random(l: *mut lua_State) -> c_int {
    let fraction = f64::from(state(l).random.next() % LARGEST) / f64::from(LARGEST);
    let number = match ffi::lua_gettop(l) {
        0 => fraction,
        1 => {
            let above = ffi::luaL_checkinteger(l, 1);
            if above < 1 {
                raise_argument(l, 1, c"interval is empty");
            }
            (fraction * above as f64).floor() + 1.0
        }
        2 => {
            let (below, above) = (ffi::luaL_checkinteger(l, 1), ffi::luaL_checkinteger(l, 2));
            if below > above {
                raise_argument(l, 2, c"interval is empty");
            }
            (fraction * (above.wrapping_sub(below).wrapping_add(1)) as f64).floor() + below as f64
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
