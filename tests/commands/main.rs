//! What the commands answer: transcripts by group, random commands, and what no transcript can say.
//!
//! Every transcript is played to our server with 1, 2 and 4 storage workers and to a real Redis where there is
//! one. Not here: malformed requests (`protocol`), the death of a process (`recovery`).

mod eviction;
mod fields;
mod histories;
mod members;
mod random;
mod random_hashes;
mod random_sorted_sets;
mod random_streams;
mod scan;
mod worlds;

mod strings {
    harness::transcripts!("tests/commands/strings":
        append, delifeq, get, getdel, getex, getrange, getset, incr, incrbyfloat, lcs, mget, mset, set, setex,
        setnx, setrange, strlen);
}

mod bitmaps {
    harness::transcripts!("tests/commands/bitmaps": bitcount, bitfield, bitop, bitpos, setbit);
}

mod lists {
    harness::transcripts!("tests/commands/lists":
        blocking, encoding, linsert, lmove, lmpop, lpos, lrem, lset, ltrim, pop, push, range);
}

mod keys {
    harness::transcripts!("tests/commands/keys":
        copy, del, dump, exists, expire, expiry_upkeep, flush, keys, memory, move_, object, reload, rename, restore,
        scan, select, sort, swapdb, ttl, type_, wait);
}

mod hyperloglogs {
    harness::transcripts!("tests/commands/hyperloglogs": pfadd, pfcount, pfdebug, pfmerge);
}

mod hashes {
    harness::transcripts!("tests/commands/hashes":
        encoding, field_expiry, hdel, hexpire, hget, hgetall, hgetdel, hgetex, hincrby, hincrbyfloat, hpersist,
        hrandfield, hscan, hset, hsetex, httl);
}

mod sets {
    harness::transcripts!("tests/commands/sets":
        encoding, sadd, sinter, sismember, smove, spop, sscan, sunion);
}

mod sorted_sets {
    harness::transcripts!("tests/commands/sorted_sets":
        encoding, zadd, zpopmin, zrandmember, zrange, zrange_skiplist, zrem, zscan, zscore, zunion, zero);
}

mod transactions {
    harness::transcripts!("tests/commands/transactions": multi, watch);
}

mod places {
    harness::transcripts!("tests/commands/places": geoadd, georadius, geosearch);
}

mod streams {
    harness::transcripts!("tests/commands/streams":
        xack, xadd, xautoclaim, xclaim, xdel, xgroup, xinfo, xlen, xpending, xrange, xread, xread_blocking, xreadgroup,
        xsetid, xtrim);
}

mod scripts {
    harness::transcripts!("tests/commands/scripts":
        bit, cjson, cmsgpack, conversions, counted, errors, eval, functions, library, sandbox, script, shebang,
        struct_, together);
}

mod waiting {
    harness::transcripts!("tests/commands/waiting": lists, sorted_sets, streams);
}

mod channels {
    harness::transcripts!("tests/commands/channels": events, patterns, pubsub, scripts, shards, subscribe, subscribed, transactions);
}

mod connection {
    harness::transcripts!("tests/commands/connection": auth, blocked, client, hello, ping, quit);
}

mod server {
    harness::transcripts!("tests/commands/server":
        changes, cluster, command, config, debug, info, replicas, server, slowlog);
}
