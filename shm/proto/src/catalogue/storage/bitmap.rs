//! Bits inside strings: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{Argument, block, int, key, key_of, one_of, string, word};

pub(super) const BITCOUNT: &[Argument] = &[
    key("key"),
    block(
        "range",
        &[
            int("start"),
            int("end"),
            one_of("unit", &[word("BYTE"), word("BIT")])
                .since("7.0.0")
                .optional(),
        ],
    )
    .optional(),
];

pub(super) const BITFIELD: &[Argument] = &[
    key("key"),
    one_of(
        "operation",
        &[
            block("get-block", &[string("encoding"), int("offset")]).token("GET"),
            block(
                "write",
                &[
                    one_of("overflow-block", &[word("WRAP"), word("SAT"), word("FAIL")])
                        .token("OVERFLOW")
                        .optional(),
                    one_of(
                        "write-operation",
                        &[
                            block(
                                "set-block",
                                &[string("encoding"), int("offset"), int("value")],
                            )
                            .token("SET"),
                            block(
                                "incrby-block",
                                &[string("encoding"), int("offset"), int("increment")],
                            )
                            .token("INCRBY"),
                        ],
                    ),
                ],
            ),
        ],
    )
    .optional()
    .multiple(),
];

pub(super) const BITFIELD_RO: &[Argument] = &[
    key("key"),
    block("get-block", &[string("encoding"), int("offset")])
        .token("GET")
        .optional()
        .multiple_token(),
];

pub(super) const BITOP: &[Argument] = &[
    one_of(
        "operation",
        &[word("AND"), word("OR"), word("XOR"), word("NOT")],
    ),
    key("destkey"),
    key_of(1, "key").multiple(),
];

pub(super) const BITPOS: &[Argument] = &[
    key("key"),
    int("bit"),
    block(
        "range",
        &[
            int("start"),
            block(
                "end-unit-block",
                &[
                    int("end"),
                    one_of("unit", &[word("BYTE"), word("BIT")])
                        .since("7.0.0")
                        .optional(),
                ],
            )
            .optional(),
        ],
    )
    .optional(),
];

/// Passes the rows gathered so far and those of bitmaps on.
#[doc(hidden)]
#[macro_export]
macro_rules! bitmap_rows {
    ($with:ident $($gathered:tt)*) => { $crate::generic_rows! { $with
        $($gathered)*
        /// Counts the bits that are set in a string.
        BitCount       ("bitcount", -2, READONLY, one(RO | ACCESS), Owner,
            docs(Bitmap, "2.6.0", "O(N)", bitmap::BITCOUNT).history(&[("7.0.0", "`BYTE` and `BIT`.")]))
            => bitmap::bitcount;
        /// Reads and changes integers of any width inside a string.
        BitField       ("bitfield", -2, WRITE | DENYOOM | VARIABLE_ACCESS, one(RW | ACCESS | UPDATE | VARIABLE_FLAGS).notes("reads and changes"), Owner,
            docs(Bitmap, "3.2.0", "O(1) per operation", bitmap::BITFIELD))
            => bitmap::bitfield;
        /// Reads integers of any width inside a string.
        BitFieldRo     ("bitfield_ro", -2, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Bitmap, "6.0.0", "O(1) per operation", bitmap::BITFIELD_RO))
            => bitmap::bitfield_ro;
        /// Combines the bits of several strings and stores the result.
        BitOp          ("bitop", -4, WRITE | DENYOOM, to_from_rest(2, OW | UPDATE, RO | ACCESS), Together,
            docs(Bitmap, "2.6.0", "O(N)", bitmap::BITOP))
            => bitmap::bitop;
        /// Finds the first bit that is set, or clear, in a string.
        BitPos         ("bitpos", -3, READONLY, one(RO | ACCESS), Owner,
            docs(Bitmap, "2.8.7", "O(N)", bitmap::BITPOS).history(&[("7.0.0", "`BYTE` and `BIT`.")]))
            => bitmap::bitpos;
        /// Returns one bit of a string.
        GetBit         ("getbit", 3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Bitmap, "2.2.0", "O(1)", &[key("key"), int("offset")]))
            => bitmap::getbit;
        /// Sets or clears one bit of a string, which grows as needed.
        SetBit         ("setbit", 4, WRITE | DENYOOM, one(RW | ACCESS | UPDATE), Owner,
            docs(Bitmap, "2.2.0", "O(1)", &[key("key"), int("offset"), int("value")]))
            => bitmap::setbit;
    }};
}
