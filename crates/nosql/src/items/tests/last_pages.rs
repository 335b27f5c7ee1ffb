//! A page that is exactly full and has nothing behind it is the last one.

use super::*;

/// So many items in each of the first so many keys.
async fn filled(throughput: u32, keys: usize, each: usize) -> World {
    let world = World::new(r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#, throughput).await;
    for key in 0..keys {
        for n in 0..each {
            let body = format!("{{\"id\":\"{n}\",\"pk\":{key},\"n\":{n},\"l\":[1,2]}}");
            assert_eq!(world.create(&format!("[{key}]"), &body).await.status, 201);
        }
    }
    world
}

/// How many rows each page has.
async fn pages(world: &World, method: &Method, headers: &[(&str, &str)], body: &str) -> Vec<usize> {
    let (mut counts, mut token) = (Vec::new(), None::<String>);
    for _ in 0..100 {
        let mut headers = headers.to_vec();
        headers.extend(token.as_deref().map(|token| (CONTINUATION, token)));
        let page = world.send(method.clone(), None, &headers, body).await;
        assert_eq!(page.status, 200, "{}", page.body);
        counts.push(page.count.expect("a count"));
        token = page.continuation;
        if token.is_none() {
            break;
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_exactly_full_is_the_last_if_nothing_follows() {
    let world = filled(400, 3, 6).await;
    for access in ["auto", "scan", "index"] {
        for (text, count, wanted) in [
            ("SELECT * FROM c", "6", vec![6]),
            ("SELECT * FROM c", "3", vec![3, 3]),
            ("SELECT * FROM c", "4", vec![4, 2]),
            ("SELECT * FROM c WHERE c.n < 4", "2", vec![2, 2]),
            ("SELECT * FROM c WHERE c.n < 4", "4", vec![4]),
            ("SELECT * FROM c WHERE c.n >= 4", "1", vec![1, 1]),
            ("SELECT VALUE c.n FROM c WHERE c.n % 2 = 0", "3", vec![3]),
            ("SELECT VALUE t FROM c JOIN t IN c.l", "4", vec![4, 4, 4]),
            ("SELECT VALUE t FROM c JOIN t IN c.l", "5", vec![5, 5, 2]),
            ("SELECT VALUE t FROM c JOIN t IN c.l WHERE t = 2", "3", vec![3, 3]),
            ("SELECT * FROM c OFFSET 2 LIMIT 10", "2", vec![2, 2]),
            ("SELECT * FROM c ORDER BY c.n", "3", vec![3, 3]),
        ] {
            let headers = [(QUERY, "True"), (KEY, "[1]"), (COUNT, count), ("x-orrery-query-access", access)];
            let body = format!("{{\"query\":\"{text}\"}}");
            assert_eq!(
                pages(&world, &Method::POST, &headers, &body).await,
                wanted,
                "{text} by {count}, {access}"
            );
        }
    }
    let range = [(RANGE, "0"), (COUNT, "9")];
    assert_eq!(pages(&world, &Method::GET, &range, "").await, [9, 9]);
    assert_eq!(pages(&world, &Method::GET, &[(KEY, "[2]"), (COUNT, "6")], "").await, [6]);
    assert_eq!(pages(&world, &Method::GET, &[(COUNT, "18")], "").await, [18]);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_partitions_behind_a_full_page_need_no_page_of_their_own() {
    // Four partitions, of which one has items.
    let world = filled(40_000, 1, 4).await;
    let cross = [(QUERY, "True"), (CROSS, "True"), (COUNT, "4")];
    let counts = pages(&world, &Method::POST, &cross, r#"{"query":"SELECT * FROM c"}"#).await;
    assert_eq!(counts.iter().rev().take_while(|count| **count == 0).count(), 0, "{counts:?}");
    assert_eq!(pages(&world, &Method::GET, &[(COUNT, "4")], "").await, [4]);
    assert_eq!(pages(&world, &Method::GET, &[(COUNT, "2")], "").await, [2, 2]);
}

/// A container of four partitions, and keys that lie in the first of them and elsewhere.
async fn with_keys_by_partition() -> (World, Vec<String>, Vec<String>) {
    let world = filled(24_000, 24, 1).await;
    let first = world.send(Method::GET, None, &[(RANGE, "0"), (COUNT, "100")], "").await;
    let is_in_first = |key: &usize| first.body.contains(&format!("\"pk\":{key},"));
    let (near, far): (Vec<_>, Vec<_>) = (0..24).partition(is_in_first);
    let headers = |keys: Vec<usize>| keys.iter().map(|key| format!("[{key}]")).collect::<Vec<_>>();
    assert!(near.len() > 1 && far.len() > 4, "{near:?} {far:?}");
    (world, headers(near), headers(far))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_page_is_the_last_if_no_other_partition_has_a_row_for_it() {
    let (world, near, far) = with_keys_by_partition().await;
    let put = |key: String, n: usize, x: u8| {
        let world = &world;
        async move {
            let body = format!("{{\"id\":\"x{n}\",\"pk\":{},\"x\":{x}}}", key.trim_matches(['[', ']']));
            assert_eq!(world.create(&key, &body).await.status, 201);
        }
    };
    for n in 0..4 {
        put(near[n % 2].clone(), n, 1).await;
    }
    for (n, key) in far.iter().enumerate() {
        put(key.clone(), n, 2).await;
    }
    let all = async |filter: &str, count: &'static str, access: &'static str, merge: &'static str| {
        let body = format!("{{\"query\":\"SELECT * FROM c WHERE {filter}\"}}");
        let headers = [
            (QUERY, "True"),
            (CROSS, "True"),
            (COUNT, count),
            ("x-orrery-query-access", access),
            ("x-orrery-query-merge", merge),
        ];
        pages(&world, &Method::POST, &headers, &body).await
    };
    for access in ["auto", "scan", "index"] {
        for merge in ["False", "True"] {
            for filter in ["c.x = 1", "c.x % 2 = 1"] {
                assert_eq!(all(filter, "4", access, merge).await, [4], "{filter} {access} {merge}");
                assert_eq!(all(filter, "2", access, merge).await, [2, 2], "{filter} {access} {merge}");
            }
        }
    }
    // One more row, in the last partition: the page is not the last one.
    let last = world.send(Method::GET, None, &[(RANGE, "3"), (COUNT, "100")], "").await;
    let key = far.iter().find(|key| last.body.contains(&format!("\"pk\":{},", key.trim_matches(['[', ']']))));
    put(key.expect("a key of the last partition").clone(), 100, 1).await;
    for access in ["auto", "scan", "index"] {
        let counts = all("c.x = 1", "4", access, "False").await;
        assert_eq!((counts[0], counts.iter().sum::<usize>()), (4, 5), "{access}: {counts:?}");
        assert_eq!(all("c.x = 1", "4", access, "True").await, [4, 1], "{access}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_into_other_partitions_costs_what_it_looks_at_and_no_visit() {
    let (world, near, far) = with_keys_by_partition().await;
    let charge = async || {
        let cross = [(QUERY, "True"), (CROSS, "True"), (COUNT, "1"), ("x-orrery-query-access", "scan")];
        let body = r#"{"query":"SELECT VALUE c.x FROM c WHERE c.x = 1"}"#;
        let page = world.send(Method::POST, None, &cross, body).await;
        assert_eq!((page.count, page.continuation), (Some(1), None));
        page.charge
    };
    let body = format!("{{\"id\":\"x\",\"pk\":{},\"x\":1}}", near[0].trim_matches(['[', ']']));
    assert_eq!(world.create(&near[0], &body).await.status, 201);
    let before = charge().await;
    assert!(before < 2.0 * 2.2, "the least of one partition alone: {before}");
    for (n, key) in far.iter().enumerate() {
        let body = format!("{{\"id\":\"y{n}\",\"pk\":{}}}", key.trim_matches(['[', ']']));
        assert_eq!(world.create(key, &body).await.status, 201);
    }
    assert!(charge().await > before, "more was looked at");
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_over_several_partitions_say_where_they_go_on_as_queries_do() {
    let world = filled(40_000, 12, 2).await;
    let query = [(QUERY, "True"), (CROSS, "True"), (COUNT, "5")];
    let queried = world.send(Method::POST, None, &query, r#"{"query":"SELECT * FROM c"}"#).await;
    let read = world.send(Method::GET, None, &[(COUNT, "5")], "").await;
    assert!(read.continuation.as_deref().expect("more").starts_with("{\"token\":\"+RID:"), "{read:?}");
    let range = |answer: &Answer| {
        answer.continuation.as_deref().and_then(|token| Some(token.split_once("\"range\"")?.1.to_owned()))
    };
    assert_eq!(range(&read), range(&queried));
    assert!(range(&read).is_some());
    let counts = pages(&world, &Method::GET, &[(COUNT, "5")], "").await;
    assert_eq!(counts.iter().sum::<usize>(), 24, "{counts:?}");
    let mut of_one = Vec::new();
    for one in [(RANGE, "0"), (RANGE, "1"), (RANGE, "2"), (RANGE, "3"), (KEY, "[1]")] {
        of_one.extend(world.send(Method::GET, None, &[one, (COUNT, "1")], "").await.continuation);
    }
    assert!(of_one.len() > 1 && of_one.iter().all(|token| token.starts_with("+RID:")), "{of_one:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_look_ahead_is_not_paid_for_where_a_key_tells() {
    let world = filled(400, 1, 8).await;
    let charge = |count: &'static str| {
        let world = &world;
        async move {
            let headers = [(QUERY, "True"), (KEY, "[0]"), (COUNT, count)];
            world.send(Method::POST, None, &headers, r#"{"query":"SELECT * FROM c"}"#).await.charge
        }
    };
    let (four, first, eight) = (charge("4").await, charge("4").await, charge("8").await);
    assert_eq!(four.to_bits(), first.to_bits());
    let more = charge("9").await;
    assert_eq!(eight.to_bits(), more.to_bits(), "the same items are read and returned");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuation_of_rows_may_be_counted_to_the_end() {
    let world = filled(400, 2, 10).await;
    for (filter, left) in [("", 7), ("WHERE c.n >= 4", 3)] {
        let page = |text: String, more: Vec<(&'static str, String)>| {
            let world = &world;
            async move {
                let mut headers = vec![(QUERY, "True"), (KEY, "[1]"), (COUNT, "3")];
                headers.extend(more.iter().map(|(name, value)| (*name, value.as_str())));
                world.send(Method::POST, None, &headers, &format!("{{\"query\":\"{text}\"}}")).await
            }
        };
        let token = page(format!("SELECT * FROM c {filter}"), vec![]).await.continuation.expect("more");
        let rest = vec![(CONTINUATION, token)];
        for (select, wanted) in [("COUNT(1)", format!("[{left}]")), ("MAX(c.n)", "[9]".into())] {
            let text = format!("SELECT VALUE {select} FROM c {filter}");
            let counted = page(text, rest.clone()).await;
            assert_eq!(counted.status, 200, "{}", counted.body);
            assert!(counted.body.contains(&format!("\"Documents\":{wanted}")), "{filter} {}", counted.body);
            assert_eq!(counted.continuation, None);
        }
        let grouped = page(format!("SELECT c.n FROM c {filter} GROUP BY c.n"), rest).await;
        assert_eq!(grouped.status, 400, "{}", grouped.body);
    }
    let join = "{\"query\":\"SELECT VALUE t FROM c JOIN t IN c.l\"}";
    let headers = [(QUERY, "True"), (KEY, "[1]"), (COUNT, "5")];
    let token = world.send(Method::POST, None, &headers, join).await.continuation.expect("more");
    let headers = [(QUERY, "True"), (KEY, "[1]"), (CONTINUATION, token.as_str())];
    let counted = "{\"query\":\"SELECT VALUE COUNT(1) FROM c JOIN t IN c.l\"}";
    let counted = world.send(Method::POST, None, &headers, counted).await;
    assert!(counted.body.contains("\"Documents\":[15]"), "the half of an item: {}", counted.body);
}
