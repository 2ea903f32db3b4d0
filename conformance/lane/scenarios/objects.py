"""Single objects and batches: every call of the client that names keys."""

import time

from . import scenario

KB, MB = 1 << 10, 1 << 20


def config(**settings):
    """An argument standing for a ReplicateConfig with these settings."""
    return {"$config": settings}


@scenario
def objects(run):
    """Put, get, upsert and remove of single objects from two clients."""
    a, b = run.pair(run.master(default_kv_lease_ttl=500))
    note, one, two, long = run.note, run.content("one", KB), run.content("two", KB), run.content("long", 3 * KB)
    note("setup", [a.opened, b.opened])
    note("health", [a.health_check(), b.health_check()])
    note("missing", [a.is_exist("k"), a.get("k"), a.get_size("k"), a.remove("k"), a.remove("k", True), a.get_replica_desc("k")])
    note("put", a.put("k", one))
    note("put again", [a.put("k", one), b.put("k", two)])
    note("get", [a.get("k"), b.get("k"), b.get_size("k"), b.is_exist("k")])
    note("upsert same size", [b.upsert("k", two), a.get("k"), b.get("k")])
    note("upsert other size", [a.upsert("k", long), a.get("k"), b.get("k"), b.get_size("k")])
    note("upsert new", [b.upsert("n", one, config(preferred_segment=b.hostname)), a.get("n")])
    note("leased", [a.is_exist("k"), a.remove("k"), b.remove("k"), a.is_exist("k")])
    note("forced", [b.remove("k", True), a.is_exist("k"), a.get("k"), b.remove("k", True)])
    note("fresh", [a.put("f", one), b.remove("f"), a.is_exist("f")])
    note("nothing", [a.put("", one), a.put("e", run.content("", 0)), a.upsert("", one), a.is_exist(""), a.remove(""), a.get("")])
    odd = ["a b", "ключ", "x" * 3000, "tab\there", "../k", "k?x=1&y=2", "new\nline"]
    on_a = config(preferred_segment=a.hostname)
    note("odd keys put", [a.put(key, run.content(key[:9], 64), on_a) for key in odd])
    note("odd keys get", [b.get(key) for key in odd])
    note("odd keys remove", [b.remove(key, True) for key in odd])
    note("parts", [a.put_parts("parts", one, two), b.get("parts") == "", b.get_size("parts"), a.upsert_parts("parts", two, one), b.get_size("parts")])
    note("closed", [a.put("on a", one, on_a), a.close(), run.until(lambda: b.is_exist("on a"), 0, seconds=5), b.get("n")])


@scenario
def batches(run):
    """Batch forms, their order and their partial failures."""
    a, b = run.pair(run.master(default_kv_lease_ttl=500))
    note = run.note
    keys = [f"b{i}" for i in range(6)]
    values = [run.content(f"v{i}", (i + 1) * KB) for i in range(6)]
    note("put", a.put_batch(keys, values))
    note("put again", b.put_batch(keys, values))
    note("put some new", b.put_batch(["b0", "new", "b1"], values[:3]))
    note("lengths differ", b.put_batch(["x", "y"], values[:1]))
    note("exist", b.batch_is_exist(keys + ["none", "new", "b0"]))
    note("exist of nothing", b.batch_is_exist([]))
    note("get", b.get_batch(keys + ["none", "b0"]))
    note("get by the writer", a.get_batch(keys))
    note("upsert", [b.upsert_batch(["b0", "b1", "u"], values[3:6]), a.get_batch(["b0", "b1", "u"])])
    note("remove leased", a.batch_remove(["b0", "none", "b2"]))
    note("remove by force", a.batch_remove(["b0", "b0", "none", "", "b1"], True))
    note("remove nothing", a.batch_remove([]))
    time.sleep(0.8)
    note("remove later", a.batch_remove(["b2", "b2", "none"]))
    note("replicas", [a.batch_get_replica_desc(["b3", "none"]) and "answered", len(b.get_replica_desc("b3"))])
    time.sleep(0.8)
    note("clear", sorted(a.batch_replica_clear(["b3", "none", "u"])))
    note("clear of another's", sorted(b.batch_replica_clear(["b4"])))
    note("left", b.batch_is_exist(keys + ["u", "new"]))


@scenario
def buffers(run):
    """Reads and writes through registered memory."""
    a, b = run.pair(run.master())
    run.content("held", 64 * KB), run.content("other", 64 * KB)
    run.note("register", [a.hold("out", 64 * KB, "held"), b.hold("in", 64 * KB, ""), a.hold("out2", 64 * KB, "other")])
    run.note("put_from", a.put_from("k", {"$address": "out"}, 64 * KB))
    run.note("get_into", [b.get_into("k", {"$address": "in"}, 64 * KB), b.held("in", 64 * KB)])
    run.note("get_into too small", b.get_into("k", {"$address": "in"}, KB))
    run.note("get_into missing", b.get_into("none", {"$address": "in"}, 64 * KB))
    run.note("batch_put_from", a.batch_put_from(["x", "y", "k"], [{"$address": "out"}, {"$address": "out2"}, {"$address": "out"}], [64 * KB] * 3))
    run.note("batch_get_into", b.batch_get_into(["y", "none"], [{"$address": "in"}, {"$address": "in"}], [64 * KB] * 2))
    run.note("upsert_from", [a.upsert_from("k", {"$address": "out2"}, 64 * KB), b.get("k")])
    run.note("get_buffer", [b.get_buffer("x"), b.get_buffer("none")])


@scenario
def leases(run):
    """What leases an object, what honours a lease, and that it ends."""
    a, b = run.pair(run.master(default_kv_lease_ttl=1500))
    value = run.content("v", KB)
    note = run.note
    keys = ["exist", "get", "batch exist", "batch get", "size", "desc", "failed", "untouched"]
    note("put", [a.put(key, value) for key in keys])
    note(
        "touch",
        [b.is_exist("exist"), b.get("get"), b.batch_is_exist(["batch exist", "none"]), b.get_batch(["batch get"]), b.get_size("size"), len(b.get_replica_desc("desc")), b.is_exist("none")],
    )
    note("remove", [a.remove(key) for key in keys])
    note("regex skips leased", a.remove_by_regex("e"))
    note("all skips leased", a.remove_all())
    note("upsert of a leased one", [a.upsert("exist", run.content("w", KB)), b.get("exist")])
    note("regex by force", a.remove_by_regex("^batch", True))
    note("left", b.batch_is_exist(keys))
    time.sleep(2.0)
    note("remove after the lease", [a.remove(key) for key in keys])
    note("renewed", [a.put("r", value), b.is_exist("r"), time.sleep(1.0), b.is_exist("r"), time.sleep(1.0), a.remove("r"), time.sleep(1.0), a.remove("r")])
    prober = b if b.probes else None
    if prober:
        note("probe", [a.put("p", value), b.probe_key("p"), a.remove("p"), b.probe_key("p"), b.probe_key("")])
        note("put for batch probe", a.put_batch(["p0", "p1", "p2", "p3"], [value] * 4))
        note("batch probe", b.batch_probe_key(["p0", "none", "p1"]))
        note("batch probe leases", b.batch_probe_key(["p0", "p1", "p2", "none"], "LastHitOnly", 2))
        note("batch probe bad size", b.batch_probe_key(["p0", "p1", "p2"], "LastHitOnly", 2))
        note("after batch probe", [a.remove(key) for key in ("p0", "p1", "p2", "p3")])


@scenario
def patterns(run):
    """Regular expressions of the ECMAScript dialect, through removal."""
    a, b = run.pair(run.master(default_kv_lease_ttl=100))
    keys = ["a", "A", "ab", "abc", "aa", "aba", "x.y", "xay", "a\nb", "k1", "k12", "key_1", "k-1", "a b", "b", "a+b", "FOO", "[x]", "}", "\\"]
    value = run.content("v", 64)
    searched = ["a", "^a$", "^ab$|^k1$", "a.b", "a$", "^b", "a(?=b)", "a(?!b)", "(a)\\1", "[[:upper:]]", "[[:digit:]]$", "\\d", "\\w-", "\\u0041", "\\x41", "(?:a|b)+$", "", "}", "[]", "[^]", "a++", "\\.", "^.$", "[*+?]", "k{1,2}1"]
    refused = ["[", "(", ")", "*a", "a{2,1}", "a{", "\\", "(?<=a)b", "(?i)a", "[[:foo:]]", "[z-a]", "(?P<n>a)", "\\1(a)", "+", "?", "a|*", "\\p{L}", "(?<n>a)"]
    for pattern in searched:
        a.put_batch(keys, [value] * len(keys))
        run.note(f"search {pattern!r}", [a.remove_by_regex(pattern), [i for i, there in enumerate(b.batch_is_exist(keys)) if there != 1]])
        a.remove_all(True)
    run.note("refused", [[pattern, b.remove_by_regex(pattern)] for pattern in refused])
    run.note("refused by force", b.remove_by_regex("[", True))


@scenario
def groups(run):
    """Objects that are leased and kept together."""
    a, b = run.pair(run.master(default_kv_lease_ttl=1500))
    value, note = run.content("v", KB), run.note
    grouped = config(group_ids=["g"])
    note("put", [a.put("g1", value, grouped), a.put("g2", value, grouped), b.put("g3", value, grouped), a.put("h1", value, config(group_ids=["h"])), a.put("single", value)])
    note("fresh member", a.remove("g3"))
    note("read leases all", [b.get("g1"), a.remove("g1"), a.remove("g2"), a.remove("h1"), a.remove("single")])
    note("new member of a leased group", [b.put("g4", value, grouped), a.remove("g4")])
    note("batch", a.put_batch(["m1", "m2", "m3"], [value] * 3, config(group_ids=["m", "", "m"])))
    note("batch read", [b.is_exist("m1"), a.remove("m3"), a.remove("m2"), a.remove("m1", True), a.remove("m3", True)])
    note("batch of a wrong length", a.put_batch(["w1", "w2"], [value] * 2, config(group_ids=["w"])))
    note("single with two groups", a.put("w3", value, config(group_ids=["w", "w"])))
    note("empty group", [a.put("e", value, config(group_ids=[""])), a.remove("e")])
    note("upsert keeps the group", [a.upsert("g1", run.content("w", KB)), b.get("g1"), a.upsert("g1", value, grouped), a.upsert("g1", value, config(group_ids=["other"]))])
    note("upsert of another size", [a.upsert("g1", run.content("w", 2 * KB)), b.get("g2"), a.remove("g1")])
    time.sleep(2.0)
    note("after the lease", [a.remove("g1"), a.remove("g2"), a.remove("g4")])


@scenario
def sizes(run):
    """Contents from 1 KB to 64 MB, written and read by both clients."""
    ladder = [KB, 4 * KB, 64 * KB, 100_001, MB, MB + 1, 4 * MB, 16 * MB] + ([] if run.quick else [32 * MB]) + [64 * MB]
    a, b = run.pair(run.master(), segment=256 * MB, buffer=160 * MB)
    for size in ladder:
        mine, theirs = run.content(f"a{size}", size), run.content(f"b{size}", size)
        run.note(f"{size} put", [a.put(f"a{size}", mine), b.put(f"b{size}", theirs)])
        run.note(f"{size} get", [a.get(f"a{size}"), a.get(f"b{size}"), b.get(f"a{size}"), b.get(f"b{size}")])
        run.note(f"{size} remove", [a.remove(f"b{size}", True), b.remove(f"a{size}", True)])
    note_steady(run, a, b)


def note_steady(run, a, b):
    """Many small objects, so that later replies come from used connections and full tables."""
    keys = [f"many{i}" for i in range(300)]
    run.note("many put", [a.put(key, run.content(key, 2 * KB)) for key in keys[:100]] == [0] * 100)
    run.note("many put in batches", [b.put_batch(keys[i : i + 50], [run.content(key, 2 * KB) for key in keys[i : i + 50]]) for i in range(100, 300, 50)])
    run.note("many get", a.get_batch(keys) == [f"{key}:{2 * KB}" for key in keys])
    run.note("many exist", sum(b.batch_is_exist(keys)))
    run.note("many removed", [a.remove_by_regex("^many[0-9]$", True), b.remove_by_regex("^many", True), b.remove_all(True)])
