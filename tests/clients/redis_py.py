"""What an application does with redis-py: called with a port and a unix socket."""

import asyncio
import sys
import threading

import redis
import redis.asyncio

port, socket = int(sys.argv[1]), sys.argv[2]


def strings(r):
    r.flushall()
    assert r.ping() is True
    assert r.set("name", "ada") is True
    assert r.get("name") == b"ada"
    assert r.get("nobody") is None
    assert r.set("name", "x", nx=True) is None
    assert r.set("name", "grace", get=True) == b"ada"
    assert r.set("short", "x", ex=100) is True
    assert 98 <= r.ttl("short") <= 100
    assert r.incr("n") == 1 and r.incrby("n", 41) == 42 and r.decr("n") == 41
    assert r.incrbyfloat("f", 1.5) == 1.5
    assert r.mset({"a": 1, "b": 2}) is True
    assert r.mget("a", "b", "c") == [b"1", b"2", None]
    assert r.append("name", "!") == 6
    assert r.getrange("name", 0, 2) == b"gra"
    assert r.setbit("bits", 7, 1) == 0 and r.bitcount("bits") == 1
    assert r.exists("a", "b", "c") == 2
    assert r.delete("a", "b") == 2
    assert r.type("name") == "string" or r.type("name") == b"string"
    assert r.getdel("f") == b"1.5"
    assert r.rename("name", "title") is True
    assert r.object("encoding", "n") in ("int", b"int")


def errors(r):
    r.set("text", "abc")
    try:
        r.incr("text")
    except redis.ResponseError as error:
        assert "not an integer" in str(error)
    else:
        raise AssertionError("INCR of a text went through")
    try:
        r.execute_command("NONSENSE")
    except redis.ResponseError as error:
        assert "unknown command" in str(error)


def pipelines(r):
    pipe = r.pipeline(transaction=False)
    for number in range(1000):
        pipe.set(f"p:{number}", number)
    assert all(pipe.execute())
    pipe = r.pipeline(transaction=False)
    for number in range(1000):
        pipe.get(f"p:{number}")
    assert pipe.execute() == [str(number).encode() for number in range(1000)]
    assert len(set(r.scan_iter("p:*"))) == 1000
    assert len(r.keys("p:*")) == 1000


def server(r):
    info = r.info()
    assert info["redis_version"].startswith("8.") and info["role"] == "master"
    assert r.info("keyspace")["db0"]["keys"] == r.dbsize()
    assert r.config_get("maxmemory") == {"maxmemory": "0"}
    assert r.config_set("maxmemory-policy", "allkeys-lru") is True
    assert r.config_set("maxmemory-policy", "noeviction") is True
    assert r.client_setname("py") is True
    assert r.client_getname() in ("py", b"py")
    names = [client["name"] for client in r.client_list()]
    assert "py" in names
    assert r.client_info()["name"] == "py"
    assert len(r.command()) > 50 and r.command_count() > 50
    assert r.time()[0] > 1_600_000_000
    assert r.echo("x") == b"x"
    assert isinstance(r.client_id(), int)
    assert r.memory_usage("text") > 0


def threads(pool):
    def work(number):
        r = redis.Redis(connection_pool=pool)
        for _ in range(200):
            r.incr("shared")

    all_threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    assert redis.Redis(connection_pool=pool).get("shared") == b"1600"


async def with_asyncio(protocol):
    r = redis.asyncio.Redis(port=port, protocol=protocol)
    assert await r.ping() is True
    replies = await asyncio.gather(*(r.set(f"async:{number}", number) for number in range(50)))
    assert all(replies)
    values = await r.mget([f"async:{number}" for number in range(50)])
    assert values == [str(number).encode() for number in range(50)]
    await r.aclose()


for protocol in (2, 3):
    for r in (redis.Redis(port=port, protocol=protocol), redis.Redis(unix_socket_path=socket, protocol=protocol)):
        strings(r)
        errors(r)
        pipelines(r)
        server(r)
        r.flushall()
        r.close()
    pool = redis.ConnectionPool(port=port, protocol=protocol)
    threads(pool)
    pool.disconnect()
    asyncio.run(with_asyncio(protocol))
print("all went well")
