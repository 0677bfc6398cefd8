//! The crate `redis`: connects in both protocols, pipelines, and maps errors to its own kinds.

use harness::{Server, Setup, sirocco};
use redis::{Commands as _, Connection, ErrorKind};

fn connect(server: &Server, protocol: &str) -> Connection {
    let url = format!("redis://127.0.0.1:{}/0?protocol={protocol}", server.port());
    redis::Client::open(url)
        .and_then(|client| client.get_connection())
        .expect("it connects")
}

#[test]
fn strings_in_both_protocols() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    for protocol in ["resp2", "resp3"] {
        let mut connection = connect(&server, protocol);
        let _: () = redis::cmd("FLUSHALL")
            .query(&mut connection)
            .expect("FLUSHALL");
        let _: () = connection.set("name", "ada").expect("SET");
        assert_eq!(connection.get::<_, String>("name").expect("GET"), "ada");
        assert_eq!(
            connection.get::<_, Option<String>>("nobody").expect("GET"),
            None
        );
        assert_eq!(connection.incr::<_, _, i64>("n", 5).expect("INCRBY"), 5);
        let _: () = connection.mset(&[("a", 1), ("b", 2)]).expect("MSET");
        let values: Vec<Option<i64>> = connection.mget(&["a", "b", "c"]).expect("MGET");
        assert_eq!(values, [Some(1), Some(2), None]);
        assert_eq!(connection.del::<_, i64>(&["a", "b", "c"]).expect("DEL"), 2);
        assert!(connection.exists::<_, bool>("name").expect("EXISTS"));
        assert!(connection.expire::<_, bool>("name", 100).expect("EXPIRE"));
        let left: i64 = connection.ttl("name").expect("TTL");
        assert!((98..=100).contains(&left));
    }
}

#[test]
fn pipelines_scans_and_errors() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    for protocol in ["resp2", "resp3"] {
        let mut connection = connect(&server, protocol);
        let mut pipe = redis::pipe();
        for number in 0..500 {
            pipe.set(format!("p:{number}"), number).ignore();
        }
        pipe.get("p:499");
        let (last,): (i64,) = pipe.query(&mut connection).expect("a pipeline");
        assert_eq!(last, 499);
        let names: std::collections::HashSet<String> =
            connection.scan_match("p:*").expect("SCAN").collect();
        assert_eq!(names.len(), 500);
        let _: () = connection.set("text", "abc").expect("SET");
        let error = connection
            .incr::<_, _, i64>("text", 1)
            .expect_err("a text is no counter");
        assert_eq!(error.kind(), ErrorKind::ResponseError);
        let info: redis::InfoDict = redis::cmd("INFO").query(&mut connection).expect("INFO");
        assert!(
            info.get::<String>("redis_version")
                .expect("a version")
                .starts_with("8.")
        );
    }
}
