//! Places, kept in sorted sets: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{
    Argument, block, double, int, key, key_of, one_of, string, word,
};

const UNIT: Argument = one_of("unit", &[word("M"), word("KM"), word("FT"), word("MI")]);
const ORDER: Argument = one_of("order", &[word("ASC"), word("DESC")]).optional();
const COUNT: Argument = block(
    "count-block",
    &[int("count").token("COUNT"), word("ANY").optional()],
)
.optional();
/// COUNT of the commands that are older than its ANY.
const RADIUS_COUNT: Argument = block(
    "count-block",
    &[
        int("count").token("COUNT"),
        word("ANY").since("6.2.0").optional(),
    ],
)
.optional();
const STORE: Argument = one_of(
    "store",
    &[
        key_of(1, "storekey").token("STORE").display("key"),
        key_of(2, "storedistkey").token("STOREDIST").display("key"),
    ],
)
.optional();
const FROM: Argument = one_of(
    "from",
    &[
        string("member").token("FROMMEMBER"),
        block("fromlonlat", &[double("longitude"), double("latitude")]).token("FROMLONLAT"),
    ],
);
const BY: Argument = one_of(
    "by",
    &[
        block("circle", &[double("radius").token("BYRADIUS"), UNIT]),
        block(
            "box",
            &[double("width").token("BYBOX"), double("height"), UNIT],
        ),
    ],
);

pub(super) const GEOADD: &[Argument] = &[
    key("key"),
    one_of("condition", &[word("NX"), word("XX")])
        .since("6.2.0")
        .optional(),
    word("CH").named("change").since("6.2.0").optional(),
    block(
        "data",
        &[double("longitude"), double("latitude"), string("member")],
    )
    .multiple(),
];

pub(super) const GEODIST: &[Argument] = &[
    key("key"),
    string("member1"),
    string("member2"),
    UNIT.optional(),
];

pub(super) const GEORADIUS: &[Argument] = &[
    key("key"),
    double("longitude"),
    double("latitude"),
    double("radius"),
    UNIT,
    word("WITHCOORD").optional(),
    word("WITHDIST").optional(),
    word("WITHHASH").optional(),
    RADIUS_COUNT,
    ORDER,
    STORE,
];

pub(super) const GEORADIUS_RO: &[Argument] = &[
    key("key"),
    double("longitude"),
    double("latitude"),
    double("radius"),
    UNIT,
    word("WITHCOORD").optional(),
    word("WITHDIST").optional(),
    word("WITHHASH").optional(),
    RADIUS_COUNT,
    ORDER,
];

pub(super) const GEORADIUSBYMEMBER: &[Argument] = &[
    key("key"),
    string("member"),
    double("radius"),
    UNIT,
    word("WITHCOORD").optional(),
    word("WITHDIST").optional(),
    word("WITHHASH").optional(),
    COUNT,
    ORDER,
    STORE,
];

pub(super) const GEORADIUSBYMEMBER_RO: &[Argument] = &[
    key("key"),
    string("member"),
    double("radius"),
    UNIT,
    word("WITHCOORD").optional(),
    word("WITHDIST").optional(),
    word("WITHHASH").optional(),
    COUNT,
    ORDER,
];

pub(super) const GEOSEARCH: &[Argument] = &[
    key("key"),
    FROM,
    BY,
    ORDER,
    COUNT,
    word("WITHCOORD").optional(),
    word("WITHDIST").optional(),
    word("WITHHASH").optional(),
];

pub(super) const GEOSEARCHSTORE: &[Argument] = &[
    key("destination"),
    key_of(1, "source"),
    FROM,
    BY,
    ORDER,
    COUNT,
    word("STOREDIST").optional(),
];

/// Passes the rows gathered so far and those of places on.
#[doc(hidden)]
#[macro_export]
macro_rules! geo_rows {
    ($with:ident $($gathered:tt)*) => { $crate::hyperloglog_rows! { $with
        $($gathered)*
        /// Adds places with their coordinates, or moves those that are there.
        GeoAdd         ("geoadd", -5, WRITE | DENYOOM, one(RW | UPDATE), Owner,
            docs(Geo, "3.2.0", "O(log(N)) per place", geo::GEOADD).history(&[("6.2.0", "`CH`, `NX` and `XX`.")]))
            => geo::geoadd;
        /// Returns the distance between two places.
        GeoDist        ("geodist", -4, READONLY, one(RO | ACCESS), Owner,
            docs(Geo, "3.2.0", "O(1)", geo::GEODIST))
            => geo::geodist;
        /// Returns the geohash of places, as text of 11 characters.
        GeoHash        ("geohash", -2, READONLY, one(RO | ACCESS), Owner,
            docs(Geo, "3.2.0", "O(1) per place", &[key("key"), string("member").optional().multiple()]))
            => geo::geohash;
        /// Returns the coordinates of places.
        GeoPos         ("geopos", -2, READONLY, one(RO | ACCESS), Owner,
            docs(Geo, "3.2.0", "O(1) per place", &[key("key"), string("member").optional().multiple()]))
            => geo::geopos;
        /// Returns or stores the places within a distance of a point.
        GeoRadius      ("georadius", -6, WRITE | DENYOOM | MOVABLEKEYS, radius(6, RO | ACCESS, OW | UPDATE), Together,
            docs(Geo, "3.2.0", "O(N + log(M)) for N places in the cells around and M in all", geo::GEORADIUS)
                .history(&[("6.2.0", "`ANY` for `COUNT`."), ("7.0.0", "Units in capital letters.")])
                .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"))
            => geo::georadius;
        /// Returns the places within a distance of a point.
        GeoRadiusRo    ("georadius_ro", -6, READONLY, one(RO | ACCESS), Owner,
            docs(Geo, "3.2.10", "O(N + log(M)) for N places in the cells around and M in all", geo::GEORADIUS_RO)
                .history(&[("6.2.0", "`ANY` for `COUNT`."), ("7.0.0", "Units in capital letters.")])
                .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument"))
            => geo::georadius_ro;
        /// Returns or stores the places within a distance of another place.
        GeoRadiusByMember ("georadiusbymember", -5, WRITE | DENYOOM | MOVABLEKEYS, radius(5, RO | ACCESS, OW | UPDATE), Together,
            docs(Geo, "3.2.0", "O(N + log(M)) for N places in the cells around and M in all", geo::GEORADIUSBYMEMBER)
                .history(&[("6.2.0", "`ANY` for `COUNT`."), ("7.0.0", "Units in capital letters.")])
                .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments"))
            => geo::georadiusbymember;
        /// Returns the places within a distance of another place.
        GeoRadiusByMemberRo ("georadiusbymember_ro", -5, READONLY, one(RO | ACCESS), Owner,
            docs(Geo, "3.2.10", "O(N + log(M)) for N places in the cells around and M in all",
                geo::GEORADIUSBYMEMBER_RO)
                .history(&[("6.2.0", "`ANY` for `COUNT`."), ("7.0.0", "Units in capital letters.")])
                .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"))
            => geo::georadiusbymember_ro;
        /// Returns the places inside a circle or a box.
        GeoSearch      ("geosearch", -7, READONLY, one(RO | ACCESS), Owner,
            docs(Geo, "6.2.0", "O(N + log(M)) for N places in the cells around and M in all", geo::GEOSEARCH)
                .history(&[("7.0.0", "Units in capital letters.")]))
            => geo::geosearch;
        /// Stores the places inside a circle or a box.
        GeoSearchStore ("geosearchstore", -8, WRITE | DENYOOM, from_to(OW | UPDATE, RO | ACCESS), Together,
            docs(Geo, "6.2.0", "O(N + log(M)) for N places in the cells around and M in all", geo::GEOSEARCHSTORE)
                .history(&[("7.0.0", "Units in capital letters.")]))
            => geo::geosearchstore;
    }};
}
