//! JSON as Lua values.
//!
//! Lua's strings end with a NUL, which is the end of the text here, too: so a look at the next byte is
//! always allowed.

use crate::lua::{self, lua_State, push, raise_argument};
use crate::vm::state;
use mlua_sys as ffi;
use std::ffi::{c_char, c_int};

/// A piece of the text.
#[derive(Clone, Copy)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// Its content is in the scratch memory.
    Text,
    Number(f64),
    Bool(bool),
    Null,
    Colon,
    Comma,
    End,
    Bad(&'static str),
}

impl Token {
    fn name(self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Text => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Bool(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Bad(what) => what,
        }
    }
}

/// A text that is being read.
struct Reader<'a> {
    l: *mut lua_State,
    text: &'a [u8],
    at: usize,
    /// Where the last piece began, or went wrong.
    token_at: usize,
    depth: c_int,
}

/// `cjson.decode`.
pub(super) unsafe extern "C-unwind" fn decode(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) != 1 {
        raise_argument(l, 1, c"expected 1 argument");
    }
    let text = lua::check_bytes(l, 1);
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        lua::raise_here(l, b"JSON parser does not support UTF-16 or UTF-32");
    }
    let mut reader = Reader {
        l,
        text,
        at: 0,
        token_at: 0,
        depth: 0,
    };
    let token = reader.next();
    reader.value(token);
    match reader.next() {
        Token::End => 1,
        other => reader.expected("the end", other),
    }
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    unsafe fn expected(&self, what: &str, found: Token) -> ! {
        let found = found.name();
        let place = self.token_at + 1;
        let l = self.l;
        lua::push_formatted(
            l,
            format_args!("Expected {what} but found {found} at character {place}"),
        );
        lua::raise_top(l)
    }

    unsafe fn descend(&mut self) {
        self.depth += 1;
        let (l, depth) = (self.l, self.depth);
        if depth > state(l).json.decode_depth_max || ffi::lua_checkstack(l, 3) == 0 {
            let place = self.at;
            lua::push_formatted(
                l,
                format_args!(
                    "Found too many nested data structures ({depth}) at character {place}"
                ),
            );
            lua::raise_top(l);
        }
    }

    /// Pushes the value that begins with `token`.
    unsafe fn value(&mut self, token: Token) {
        let l = self.l;
        match token {
            Token::Text => push(l, &state(l).scratch),
            Token::Number(number) => ffi::lua_pushnumber(l, number),
            Token::Bool(value) => ffi::lua_pushboolean(l, c_int::from(value)),
            Token::Null => ffi::lua_pushlightuserdata(l, std::ptr::null_mut()),
            Token::ObjectBegin => self.object(),
            Token::ArrayBegin => self.array(),
            other => self.expected("value", other),
        }
    }

    unsafe fn object(&mut self) {
        self.descend();
        let l = self.l;
        ffi::lua_createtable(l, 0, 0);
        let mut token = self.next();
        if !matches!(token, Token::ObjectEnd) {
            loop {
                if !matches!(token, Token::Text) {
                    self.expected("object key string", token);
                }
                push(l, &state(l).scratch);
                token = self.next();
                if !matches!(token, Token::Colon) {
                    self.expected("colon", token);
                }
                token = self.next();
                self.value(token);
                ffi::lua_rawset(l, -3);
                match self.next() {
                    Token::ObjectEnd => break,
                    Token::Comma => token = self.next(),
                    other => self.expected("comma or object end", other),
                }
            }
        }
        self.depth -= 1;
    }

    unsafe fn array(&mut self) {
        self.descend();
        let l = self.l;
        ffi::lua_createtable(l, 0, 0);
        let mut token = self.next();
        if !matches!(token, Token::ArrayEnd) {
            for at in 1.. {
                self.value(token);
                ffi::lua_rawseti_(l, -2, at);
                match self.next() {
                    Token::ArrayEnd => break,
                    Token::Comma => token = self.next(),
                    other => self.expected("comma or array end", other),
                }
            }
        }
        self.depth -= 1;
    }

    fn bad(&mut self, what: &'static str) -> Token {
        self.token_at = self.at;
        Token::Bad(what)
    }

    unsafe fn next(&mut self) -> Token {
        while matches!(self.peek(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.token_at = self.at;
        let single = match self.peek(0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            0 => return Token::End,
            b'"' => return self.string(),
            _ => return self.word(),
        };
        self.at += 1;
        single
    }

    unsafe fn word(&mut self) -> Token {
        let words = [
            (&b"true"[..], Token::Bool(true)),
            (b"false", Token::Bool(false)),
            (b"null", Token::Null),
        ];
        let takes_invalid = state(self.l).json.decodes_invalid;
        if matches!(self.peek(0), b'-' | b'0'..=b'9') {
            if !takes_invalid && self.is_invalid_number() {
                return self.bad("invalid number");
            }
            return self.number();
        }
        for (word, token) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        if takes_invalid && self.is_invalid_number() {
            return self.number();
        }
        self.bad("invalid token")
    }

    /// Whether a number begins here that C understands but JSON does not.
    fn is_invalid_number(&self) -> bool {
        if self.peek(0) == b'+' {
            return true;
        }
        let sign = usize::from(self.peek(0) == b'-');
        if self.peek(sign) == b'0' {
            let next = self.peek(sign + 1);
            return next | 0x20 == b'x' || next.is_ascii_digit();
        }
        let rest = self.text.get(self.at + sign..).unwrap_or_default();
        let word = rest.get(..3).unwrap_or_default();
        word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
    }

    unsafe fn number(&mut self) -> Token {
        let start = self.text.as_ptr().add(self.at).cast::<c_char>();
        let mut end: *mut c_char = std::ptr::null_mut();
        // The text ends with a NUL, so C reads no further.
        let number = libc::strtod(start, &raw mut end);
        let len = end.cast_const().offset_from(start);
        if len <= 0 {
            return self.bad("invalid number");
        }
        self.at += len.unsigned_abs();
        Token::Number(number)
    }

    unsafe fn string(&mut self) -> Token {
        let out = &mut state(self.l).scratch;
        out.clear();
        self.at += 1;
        loop {
            let byte = self.peek(0);
            match byte {
                b'"' => break,
                0 => return self.bad("unexpected end of string"),
                b'\\' => {
                    let escaped = match self.peek(1) {
                        byte @ (b'"' | b'\\' | b'/') => byte,
                        b'b' => 8,
                        b't' => b'\t',
                        b'n' => b'\n',
                        b'f' => 12,
                        b'r' => b'\r',
                        b'u' => {
                            let Some((character, len)) = self.unicode() else {
                                return self.bad("invalid unicode escape code");
                            };
                            let mut utf8 = [0; 4];
                            out.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                            self.at += len;
                            continue;
                        }
                        _ => return self.bad("invalid escape code"),
                    };
                    out.push(escaped);
                    self.at += 2;
                }
                _ => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Token::Text
    }

    /// Four hexadecimal digits.
    fn code(&self, ahead: usize) -> Option<u32> {
        let digits = self.text.get(self.at + ahead..self.at + ahead + 4)?;
        let mut code = 0;
        for digit in digits {
            code = code << 4 | char::from(*digit).to_digit(16)?;
        }
        Some(code)
    }

    /// The character of an escape, and how long that is; a pair of them for characters beyond 16 bits.
    fn unicode(&self) -> Option<(char, usize)> {
        let high = self.code(2)?;
        if high & 0xF800 != 0xD800 {
            return Some((char::from_u32(high)?, 6));
        }
        if high & 0x400 != 0 || self.peek(6) != b'\\' || self.peek(7) != b'u' {
            return None;
        }
        let low = self.code(8)?;
        if low & 0xFC00 != 0xDC00 {
            return None;
        }
        let code = 0x1_0000 + ((high & 0x3FF) << 10 | (low & 0x3FF));
        Some((char::from_u32(code)?, 12))
    }
}
