//! Every built-in function, with the answers that the service documents for it.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

use orrery_doc::json;
use orrery_query::{Context, Geospatial, Parameters, QueryError, Row, compile};

/// 2024-10-14T14:20:30.6668888Z
const NOW: i64 = 17_289_156_306_668_888;

fn answer(expr: &str, geospatial: Geospatial) -> Result<String, QueryError> {
    let cx = Context { geospatial, ..Context::at(NOW, 7) };
    let rows = compile(&format!("SELECT VALUE {expr}"), &Parameters::new())?.run_all([], &cx)?;
    let rows: Vec<String> = rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()).collect();
    Ok(rows.into_iter().next().unwrap_or("undefined".into()))
}

fn check(cases: &[(&str, &str)]) {
    for (expr, expected) in cases {
        let got = answer(expr, Geospatial::Geography).unwrap_or_else(|error| format!("error: {error}"));
        assert_eq!(got, *expected, "for {expr}");
    }
}

/// The names of the documented groups that must run.
const NAMES: &[(&str, usize)] = &[
    ("ABS", 1),
    ("ACOS", 1),
    ("ASIN", 1),
    ("ATAN", 1),
    ("ATN2", 2),
    ("CEILING", 1),
    ("COS", 1),
    ("COT", 1),
    ("DEGREES", 1),
    ("EXP", 1),
    ("FLOOR", 1),
    ("LOG", 1),
    ("LOG10", 1),
    ("NUMBERBIN", 1),
    ("PI", 0),
    ("POWER", 2),
    ("RADIANS", 1),
    ("RAND", 0),
    ("ROUND", 1),
    ("SIGN", 1),
    ("SIN", 1),
    ("SQRT", 1),
    ("SQUARE", 1),
    ("TAN", 1),
    ("TRUNC", 1),
    ("INTADD", 2),
    ("INTBITAND", 2),
    ("INTBITLEFTSHIFT", 2),
    ("INTBITNOT", 1),
    ("INTBITOR", 2),
    ("INTBITRIGHTSHIFT", 2),
    ("INTBITXOR", 2),
    ("INTDIV", 2),
    ("INTMOD", 2),
    ("INTMUL", 2),
    ("INTSUB", 2),
    ("ARRAY_AVG", 1),
    ("ARRAY_CONCAT", 2),
    ("ARRAY_CONTAINS", 2),
    ("ARRAY_CONTAINS_ALL", 2),
    ("ARRAY_CONTAINS_ANY", 2),
    ("ARRAY_LENGTH", 1),
    ("ARRAY_MAX", 1),
    ("ARRAY_MEDIAN", 1),
    ("ARRAY_MIN", 1),
    ("ARRAY_SLICE", 2),
    ("ARRAY_SUM", 1),
    ("CHOOSE", 2),
    ("OBJECTTOARRAY", 1),
    ("SETDIFFERENCE", 2),
    ("SETEQUAL", 2),
    ("SETINTERSECT", 2),
    ("SETUNION", 2),
    ("CONCAT", 2),
    ("CONTAINS", 2),
    ("CONTAINS_ALL_CI", 2),
    ("CONTAINS_ALL_CS", 2),
    ("CONTAINS_ANY_CI", 2),
    ("CONTAINS_ANY_CS", 2),
    ("ENDSWITH", 2),
    ("INDEX_OF", 2),
    ("LASTINDEXOF", 2),
    ("LEFT", 2),
    ("LENGTH", 1),
    ("LOWER", 1),
    ("LTRIM", 1),
    ("REGEXMATCH", 2),
    ("REPLACE", 3),
    ("REPLICATE", 2),
    ("REVERSE", 1),
    ("RIGHT", 2),
    ("RTRIM", 1),
    ("STARTSWITH", 2),
    ("STRINGEQUALS", 2),
    ("STRINGJOIN", 2),
    ("STRINGSPLIT", 2),
    ("STRINGTOARRAY", 1),
    ("STRINGTOBOOLEAN", 1),
    ("STRINGTONULL", 1),
    ("STRINGTONUMBER", 1),
    ("STRINGTOOBJECT", 1),
    ("SUBSTRING", 3),
    ("TOSTRING", 1),
    ("TRIM", 1),
    ("UPPER", 1),
    ("SUBSTRINGAFTER", 2),
    ("SUBSTRINGBEFORE", 2),
    ("LASTSUBSTRINGAFTER", 2),
    ("LASTSUBSTRINGBEFORE", 2),
    ("AGO", 2),
    ("DATETIMEADD", 3),
    ("DATETIMEBIN", 2),
    ("DATETIMEDIFF", 3),
    ("DATETIMEFORMAT", 2),
    ("DATETIMEFROMPARTS", 3),
    ("DATETIMEPART", 2),
    ("DATETIMETOTICKS", 1),
    ("DATETIMETOTIMESTAMP", 1),
    ("DAY", 1),
    ("GETCURRENTDATETIME", 0),
    ("GETCURRENTDATETIMESTATIC", 0),
    ("GETCURRENTTICKS", 0),
    ("GETCURRENTTICKSSTATIC", 0),
    ("GETCURRENTTIMESTAMP", 0),
    ("GETCURRENTTIMESTAMPSTATIC", 0),
    ("IS_DATETIME", 1),
    ("MONTH", 1),
    ("NOW", 0),
    ("TICKSTODATETIME", 1),
    ("TIMESTAMPTODATETIME", 1),
    ("YEAR", 1),
    ("IS_ARRAY", 1),
    ("IS_BOOL", 1),
    ("IS_BOOLEAN", 1),
    ("IS_DEFINED", 1),
    ("IS_FINITE_NUMBER", 1),
    ("IS_INTEGER", 1),
    ("IS_NULL", 1),
    ("IS_NUMBER", 1),
    ("IS_OBJECT", 1),
    ("IS_PRIMITIVE", 1),
    ("IS_STRING", 1),
    ("IIF", 3),
    ("DOCUMENTID", 1),
    ("ST_AREA", 1),
    ("ST_DISTANCE", 2),
    ("ST_INTERSECTS", 2),
    ("ST_ISVALID", 1),
    ("ST_ISVALIDDETAILED", 1),
    ("ST_WITHIN", 2),
    ("FULLTEXTCONTAINS", 2),
    ("FULLTEXTCONTAINSALL", 3),
    ("FULLTEXTCONTAINSANY", 3),
    ("VECTORDISTANCE", 2),
];

/// Values of every type, to be given to every function.
const ARGUMENTS: &[&str] = &[
    "undefined",
    "null",
    "true",
    "0",
    "-1",
    "2.5",
    "1e308",
    "9223372036854775807",
    "-9223372036854775808",
    "''",
    "'a'",
    "'2020-02-29'",
    "'\u{1F600}é'",
    "[]",
    "[1, 'a', null]",
    "[[1], {'a': 1}]",
    "{}",
    "{'type': 'Point', 'coordinates': [1, 2]}",
    "{'type': 'Polygon', 'coordinates': [[[0, 0], [1, 0], [0, 1], [0, 0]]]}",
    "{'type': 'Polygon', 'coordinates': 1}",
];

#[test]
fn every_documented_name_runs_with_arguments_of_every_type() {
    for (name, least) in NAMES {
        for first in ARGUMENTS {
            for second in ARGUMENTS {
                let list = [*first, *second, *first].into_iter().take(*least).collect::<Vec<_>>();
                for name in [name.to_string(), name.to_ascii_lowercase()] {
                    let call = format!("{name}({})", list.join(", "));
                    for geospatial in [Geospatial::Geography, Geospatial::Geometry] {
                        let got = answer(&call, geospatial).unwrap_or_else(|error| panic!("{call}: {error}"));
                        let json =
                            got == "undefined" || serde_json::from_str::<serde_json::Value>(&got).is_ok();
                        assert!(json, "{call} gives {got}");
                    }
                }
                if *least < 2 {
                    break;
                }
            }
            if *least == 0 {
                break;
            }
        }
    }
    println!("{} functions", NAMES.len());
}

#[test]
fn functions_of_later_releases_say_their_names() {
    for (call, name) in
        [("FullTextScore('a', 'b')", "FULLTEXTSCORE"), ("RRF(FullTextScore('a', 'b'))", "RRF")]
    {
        let error = answer(call, Geospatial::Geography).unwrap_err();
        assert_eq!(error.to_string(), format!("The function {name} is not yet supported."));
        assert!(matches!(error, QueryError::Unsupported(_)));
    }
}

#[test]
fn mathematical() {
    check(&[
        ("[ABS(-1), ABS(0), ABS(1)]", "[1,0,1]"),
        ("ABS('a')", "undefined"),
        ("ABS(-9223372036854775808)", "9223372036854776000"),
        ("ACOS(2)", "undefined"),
        ("[ROUND(2.4), ROUND(2.6), ROUND(2.5), ROUND(-2.4), ROUND(-2.6), ROUND(-2.5)]", "[2,3,3,-2,-3,-3]"),
        ("[ROUND(1.2345, 2), ROUND(1234, -2)]", "[1.23,1200]"),
        ("[CEILING(62.6), CEILING(-145.12), CEILING(0.2989)]", "[63,-145,1]"),
        ("[FLOOR(62.6), FLOOR(-145.12), FLOOR(0.2989)]", "[62,-146,0]"),
        ("[TRUNC(2.4), TRUNC(-2.6)]", "[2,-2]"),
        ("[SIGN(-2), SIGN(0), SIGN(2)]", "[-1,0,1]"),
        ("[SQUARE(2), SQRT(16), POWER(2, 10), LOG10(100), LOG(8, 2)]", "[4,4,1024,2,3]"),
        ("LOG(0)", "undefined"),
        ("SQRT(-1)", "undefined"),
        ("[NUMBERBIN(37.752, 10), NUMBERBIN(37.752, 3.1), NUMBERBIN(37.752)]", "[30,37.2,37]"),
        ("NUMBERBIN(1, 0)", "undefined"),
        ("[INTADD(20, 10), INTSUB(20, 10), INTMUL(20, 10), INTDIV(10, 2), INTMOD(5, 3)]", "[30,10,200,5,2]"),
        ("INTADD(20, 0.4)", "undefined"),
        ("INTDIV(10, 0)", "undefined"),
        ("INTDIV(-9223372036854775808, -1)", "undefined"),
        ("[INTBITLEFTSHIFT(16, 4), INTBITRIGHTSHIFT(16, 4), INTBITNOT(65)]", "[256,1,-66]"),
        ("[INTBITAND(15, 25), INTBITOR(56, 100), INTBITXOR(56, 100)]", "[9,124,92]"),
        ("IS_NUMBER(RAND())", "true"),
    ]);
}

#[test]
fn arrays() {
    check(&[
        ("[ARRAY_AVG([1, 2, 3, 4]), ARRAY_AVG([1, -2.7, 3, -4, undefined])]", "[2.5,-0.675]"),
        ("[ARRAY_AVG(['abc']), ARRAY_AVG([12, 'abc']), ARRAY_AVG([])]", "[]"),
        ("ARRAY_MAX(['abc', 'ABC', 'aBc', 'AbC'])", r#""abc""#),
        ("ARRAY_MAX([12, 'abc', true, false, null, undefined])", r#""abc""#),
        ("ARRAY_MIN([12, 'abc', true, false, null, undefined])", "null"),
        ("ARRAY_MAX([[1], 2])", "undefined"),
        ("[ARRAY_MEDIAN([1, 2, 3, 4]), ARRAY_MEDIAN([3, 1, 2])]", "[2.5,2]"),
        ("ARRAY_SUM([1, 'a'])", "undefined"),
        ("ARRAY_CONCAT(['apples'], ['strawberries'], ['x', 1])", r#"["apples","strawberries","x",1]"#),
        ("ARRAY_CONTAINS(['coats'], 'coats')", "true"),
        ("ARRAY_CONTAINS([{'n': 'a', 'c': 1}], {'n': 'a'})", "false"),
        ("ARRAY_CONTAINS([{'n': 'a', 'c': 1}], {'n': 'a'}, true)", "true"),
        ("ARRAY_CONTAINS('a', 'a')", "undefined"),
        ("ARRAY_CONTAINS_ALL([1, 2, 3, 4], 2, 3, 4, 5)", "false"),
        ("ARRAY_CONTAINS_ANY([1, 2, 3, 4], 2, 3, 4, 5)", "true"),
        ("ARRAY_SLICE([70, 86, 92, 99], 1)", "[86,92,99]"),
        ("ARRAY_SLICE([70, 86, 92, 99], -2, 1)", "[92]"),
        ("ARRAY_SLICE([70, 86], 1, 0)", "[]"),
        ("ARRAY_SLICE([70, 86], 1, -1)", "[]"),
        ("ARRAY_SLICE([70, 86], 9)", "[]"),
        ("[CHOOSE(1, 'abc', 1, true, [1]), CHOOSE(3, 'abc', 1, true, [1])]", r#"["abc",true]"#),
        ("[CHOOSE(0, 'a'), CHOOSE(2, 'a'), CHOOSE(-1, 'a'), CHOOSE(1.5, 'a')]", "[]"),
        ("OBJECTTOARRAY({'a': '12345', 'b': '67890'})", r#"[{"k":"a","v":"12345"},{"k":"b","v":"67890"}]"#),
        ("OBJECTTOARRAY({'a': 1}, 'name', 'value')", r#"[{"name":"a","value":1}]"#),
        ("SETINTERSECT([1, 1, 1, 1], [2, 3, 4])", "[]"),
        ("SETUNION([1, 2, 3, 4], [1, 2, 3, 4, 5, 6])", "[1,2,3,4,5,6]"),
        ("SETDIFFERENCE([1, 2, 6, 7], [1, 2, 3])", "[6,7]"),
        ("SETDIFFERENCE([1, 1, 1, 1], [2, 3, 4])", "[1]"),
        ("[SETEQUAL([1, 2], [2, 1]), SETEQUAL([1, 2], [1]), SETEQUAL([], [])]", "[true,false,true]"),
    ]);
}

#[test]
fn strings() {
    check(&[
        ("CONTAINS('AdventureWorks', 'works', true)", "true"),
        ("CONTAINS('ÀÉ', 'àé', true)", "true"),
        ("CONTAINS('a', 1)", "undefined"),
        ("CONTAINS('a', 'a', 1)", "undefined"),
        ("CONTAINS_ALL_CI('Have a nice day!', 'HAVE', 'NICE', 'DAY!')", "true"),
        ("CONTAINS_ALL_CS('Have a nice day!', 'HAVE', 'NICE')", "false"),
        ("CONTAINS_ALL_CI('Have a nice day!', undefined, 'nice')", "undefined"),
        ("CONTAINS_ALL_CI('Have a nice day!', undefined, 'had')", "false"),
        ("CONTAINS_ANY_CI('Have a nice day!', undefined, 'nice')", "true"),
        ("CONTAINS_ANY_CI('Have a nice day!', undefined, 'had')", "undefined"),
        ("CONTAINS_ANY_CS('Have a nice day!', 'had', 'NICE')", "false"),
        ("[LASTINDEXOF('abcdeabc', 'abc'), LASTINDEXOF('abcdeabc', 'abc', 6)]", "[5,0]"),
        ("[LASTINDEXOF('abcdeabc', 'abc', 7), LASTINDEXOF('abcdeabc', 'fg')]", "[5,-1]"),
        ("[INDEX_OF('AdventureWorks', 'Works', 5), INDEX_OF('AdventureWorks', 'A', 5)]", "[9,-1]"),
        ("[INDEX_OF('ébé', 'é', 1), INDEX_OF('abc', 'z'), INDEX_OF('abc', '', 99)]", "[2,-1,-1]"),
        (
            "[LEFT('AdventureWorks', 9), LEFT('Ad', 9), LEFT('Ad', 0), LEFT('Ad', -1)]",
            r#"["Adventure","Ad","",""]"#,
        ),
        ("[RIGHT('éclair', 2), RIGHT('Ad', 9), RIGHT('Ad', 0)]", r#"["ir","Ad",""]"#),
        (
            "[SUBSTRING('AdventureWorks', 9, 5), SUBSTRING('éa', 1, 99), SUBSTRING('a', 5, 1)]",
            r#"["Works","a",""]"#,
        ),
        ("LENGTH('éa')", "2"),
        ("[TRIM('   a '), LTRIM('   a '), RTRIM('   a ')]", r#"["a","a ","   a"]"#),
        ("[TRIM('abcab', 'ab'), LTRIM('abc', 'c'), TRIM('aaa', 'a')]", r#"["c","abc",""]"#),
        ("[REPLACE('a desk', 'desk', 'sofa'), REPLACE('a', '', 'x')]", r#"["a sofa","a"]"#),
        ("[REPLICATE('a', 3), REPLICATE('a', 0)]", r#"["aaa",""]"#),
        ("[REPLICATE('a', -1), REPLICATE('a', 10001)]", "[]"),
        ("REVERSE('Adé')", r#""édA""#),
        ("STRINGEQUALS('AbC', 'abc', true)", "true"),
        ("STRINGJOIN(['hello', 'world'], ' ')", r#""hello world""#),
        ("STRINGJOIN(['a', 1], '')", "undefined"),
        ("STRINGSPLIT('Handlebars/Gloves', '/')", r#"["Handlebars","Gloves"]"#),
        ("STRINGSPLIT('a,,b', ',')", r#"["a","","b"]"#),
        ("[STRINGTOARRAY('[1, 2]'), STRINGTOARRAY('[ ]'), STRINGTOARRAY('{}')]", "[[1,2],[]]"),
        ("[STRINGTOBOOLEAN('true'), STRINGTOBOOLEAN(' false '), STRINGTOBOOLEAN('TRUE')]", "[true,false]"),
        (
            "[STRINGTONUMBER('1.0'), STRINGTONUMBER('-1.79e5'), STRINGTONUMBER('0xF'), STRINGTONUMBER('99d')]",
            "[1,-179000]",
        ),
        ("[STRINGTONULL('null'), STRINGTONULL('NULL')]", "[null]"),
        ("STRINGTOOBJECT('{\\'a\\': 1}')", "undefined"),
        ("STRINGTOOBJECT('{\"a\": {\"b\": 2}}')", r#"{"a":{"b":2}}"#),
        (
            "[TOSTRING(1.25), TOSTRING(true), TOSTRING(null), TOSTRING('x'), TOSTRING([1]), TOSTRING(undefined)]",
            r#"["1.25","true","null","x","[1]"]"#,
        ),
        ("[UPPER('abcé'), LOWER('ABCÉ')]", r#"["ABCÉ","abcé"]"#),
        ("REGEXMATCH('shoes', 's.*', 'i')", "true"),
        ("REGEXMATCH('shoes', '^hoes')", "false"),
        ("REGEXMATCH('shoes', '[')", "undefined"),
        ("[SUBSTRINGAFTER('A-B-C', '-'), SUBSTRINGBEFORE('A-B-C', '-')]", r#"["B-C","A"]"#),
        (
            "[LASTSUBSTRINGAFTER('A-B-C', '-'), LASTSUBSTRINGBEFORE('bike::touring::frame', '::')]",
            r#"["C","bike::touring"]"#,
        ),
    ]);
}

#[test]
fn dates() {
    check(&[
        ("AGO('yyyy', 1)", r#""2023-10-14T14:20:30.6668888Z""#),
        ("AGO('ms', 4)", r#""2024-10-14T14:20:30.6628888Z""#),
        ("NOW()", r#""2024-10-14T14:20:30.6668888Z""#),
        ("NOW('ss', 30)", r#""2024-10-14T14:21:00.6668888Z""#),
        ("NOW('x', 30)", "undefined"),
        ("DATETIMEADD('mm', 1, '2020-07-03T00:00:00.0000000')", r#""2020-08-03T00:00:00.0000000Z""#),
        ("DATETIMEADD('ss', -25, '2020-07-03T00:00:00.0000000')", r#""2020-07-02T23:59:35.0000000Z""#),
        ("DATETIMEADD('ns', 9223372036854775807, '2020-07-03')", r#""2312-10-12T23:47:16.8547758Z""#),
        ("DATETIMEADD('yyyy', 9223372036854775807, '2020-07-03')", "undefined"),
        ("DATETIMEBIN('2021-01-08T18:35:00.0000000', 'dd')", r#""2021-01-08T00:00:00.0000000Z""#),
        ("DATETIMEBIN('2021-01-08T18:35:00.0000000', 'hh', 5)", r#""2021-01-08T15:00:00.0000000Z""#),
        ("DATETIMEBIN('2021-01-08T18:35:00.0000000', 'hh', 0)", "undefined"),
        ("DATETIMEDIFF('hh', '2018-03-05T05:00:00', '2019-02-04T16:00:00')", "8075"),
        ("DATETIMEDIFF('dd', '2018-03-05T05:00:00', '2019-02-04T16:00:00')", "336"),
        ("DATETIMEFORMAT('2024-10-10 14:40:20', 'yyyy-MM-dd [HH:mm:ss]')", r#""2024-10-10 [14:40:20]""#),
        (
            "DATETIMEFORMAT('2024-10-10 14:40:20', 'To\\\\da\\\\y i\\\\s: yyyy-MM-ddTHH:mm:ss.FFF')",
            r#""Today is: 2024-10-10T14:40:20.""#,
        ),
        ("DATETIMEFROMPARTS(2017, 4, 20, 13, 15, 20, 3456789)", r#""2017-04-20T13:15:20.3456789Z""#),
        ("DATETIMEFROMPARTS(2017, 13, 20)", "undefined"),
        ("DATETIMEPART('ns', '2016-05-29T08:30:00.1301617')", "130161700"),
        ("DATETIMETOTICKS('1970-01-01')", "0"),
        ("DATETIMETOTIMESTAMP('2015-05-19T00:00:00.0000000Z')", "1431993600000"),
        ("TICKSTODATETIME(0)", r#""1970-01-01T00:00:00.0000000Z""#),
        ("TIMESTAMPTODATETIME(-11644473600000)", r#""1601-01-01T00:00:00.0000000Z""#),
        ("TIMESTAMPTODATETIME(9223372036854775807)", "undefined"),
        ("[YEAR('2024-12-12'), MONTH('2024-12-12'), DAY('2024-12-12T20:21:25Z')]", "[2024,12,12]"),
        (
            "[IS_DATETIME('2024-12-12'), IS_DATETIME('2024-12-12Z'), IS_DATETIME('2024-12-12 20:21:25.123Z')]",
            "[true,true,true]",
        ),
        (
            "[IS_DATETIME('2024-12-12T20Z'), IS_DATETIME('2024-12-12 20:21:25.'), IS_DATETIME(1), IS_DATETIME(undefined)]",
            "[false,false,false,false]",
        ),
    ]);
}

#[test]
fn types_and_conditions() {
    check(&[
        (
            "[IS_DEFINED(undefined), IS_DEFINED(null), IS_NULL(undefined), IS_PRIMITIVE([])]",
            "[false,true,false,false]",
        ),
        (
            "[IS_INTEGER(1.0), IS_INTEGER(1.5), IS_INTEGER('1'), IS_FINITE_NUMBER(1e308)]",
            "[true,false,false,true]",
        ),
        ("[IIF(true, 1, 2), IIF('true', 1, 2), IIF(undefined, 1, 2)]", "[1,2,2]"),
        ("DOCUMENTID({'_rid': '36ZyAPW+uN8NAAAAAAAAAA=='})", "13"),
        ("DOCUMENTID({'_rid': 'x'})", "undefined"),
    ]);
}

/// Shapes by short names, to keep the cases readable.
fn spatial(call: &str) -> String {
    [
        ("#box", "{'type': 'Polygon', 'coordinates': [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}"),
        (
            "#ring",
            "{'type': 'Polygon', 'coordinates': [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], \
             [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}",
        ),
        ("#small", "{'type': 'Polygon', 'coordinates': [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}"),
        ("#middle", "{'type': 'Polygon', 'coordinates': [[[3, 3], [7, 3], [7, 7], [3, 7], [3, 3]]]}"),
        ("#clockwise", "{'type': 'Polygon', 'coordinates': [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]}"),
        (
            "#two",
            "{'type': 'MultiPolygon', 'coordinates': [[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]], \
             [[[20, 0], [21, 0], [21, 1], [20, 1], [20, 0]]]]}",
        ),
        ("#across", "{'type': 'LineString', 'coordinates': [[-5, 5], [15, 5]]}"),
        ("#inside", "{'type': 'LineString', 'coordinates': [[1, 1], [2, 3]]}"),
        (
            "#date_line",
            "{'type': 'Polygon', 'coordinates': [[[179, -1], [-179, -1], [-179, 1], [179, 1], [179, -1]]]}",
        ),
        (
            "#wide",
            "{'type': 'Polygon', 'coordinates': [[[-60, 20], [70, 20], [70, 70], [-60, 70], [-60, 20]]]}",
        ),
    ]
    .into_iter()
    .fold(call.to_owned(), |text, (name, shape)| text.replace(name, shape))
    .replace("#(", "{'type': 'Point', 'coordinates': [")
    .replace(")#", "]}")
}

#[test]
fn shapes_on_the_globe_and_on_the_plane() {
    for (call, globe, plane) in [
        ("ST_WITHIN(#(5, 5)#, #box)", "true", "true"),
        ("ST_WITHIN(#(5, 5)#, #ring)", "false", "false"),
        ("ST_WITHIN(#(2, 2)#, #ring)", "true", "true"),
        ("ST_WITHIN(#(15, 5)#, #box)", "false", "false"),
        ("ST_WITHIN(#(0, 0)#, #box)", "false", "false"),
        ("ST_WITHIN(#small, #box)", "true", "true"),
        ("ST_WITHIN(#box, #small)", "false", "false"),
        ("ST_WITHIN(#box, #box)", "true", "true"),
        ("ST_WITHIN(#middle, #box)", "true", "true"),
        ("ST_WITHIN(#middle, #ring)", "false", "false"),
        ("ST_WITHIN(#inside, #box)", "true", "true"),
        ("ST_WITHIN(#across, #box)", "false", "false"),
        ("ST_WITHIN(#(20.5, 0.5)#, #two)", "true", "true"),
        ("ST_WITHIN(#(10, 0.5)#, #two)", "false", "false"),
        ("ST_WITHIN(#(5, 5)#, #clockwise)", "false", "true"),
        ("ST_WITHIN(#(50, 50)#, #clockwise)", "true", "false"),
        ("ST_WITHIN(#(0, 40)#, #wide)", "false", "true"),
        ("ST_WITHIN(#(180, 0)#, #date_line)", "true", "false"),
        ("ST_WITHIN(#(0, 0)#, #date_line)", "false", "true"),
        ("ST_WITHIN(1, #box)", "undefined", "undefined"),
        ("ST_WITHIN(#(200, 0)#, #box)", "undefined", "false"),
        ("ST_INTERSECTS(#across, #box)", "true", "true"),
        ("ST_INTERSECTS(#small, #ring)", "true", "true"),
        ("ST_INTERSECTS(#(5, 5)#, #ring)", "false", "false"),
        ("ST_INTERSECTS(#(0, 0)#, #box)", "true", "true"),
        ("ST_INTERSECTS(#two, #box)", "true", "true"),
        ("ST_INTERSECTS(#(15, 5)#, #across)", "true", "true"),
        ("ST_INTERSECTS({'type': 'LineString', 'coordinates': [[0, 0], [0, 40]]}, #wide)", "false", "true"),
        ("ST_DISTANCE(#(5, 5)#, #box)", "0", "0"),
        ("ST_DISTANCE(#(5, 5)#, #ring) > 100000", "true", "false"),
        ("ST_DISTANCE(#(12, 5)#, #box)", "221797", "2"),
        ("ST_DISTANCE(#(3, 4)#, #(0, 0)#)", "554058", "5"),
        ("ST_DISTANCE(#across, #(5, 6)#)", "102099", "1"),
        ("ST_AREA(#box)", "1227857363074", "100"),
        ("ST_AREA(#ring) < ST_AREA(#box)", "true", "true"),
        ("ST_AREA(#clockwise) > 500000000000000", "true", "false"),
        ("ST_AREA(#across)", "0", "0"),
        ("ST_AREA(#(1, 1)#)", "0", "0"),
        ("ST_ISVALID(#wide)", "true", "true"),
        ("ST_ISVALID(#(200, 0)#)", "false", "true"),
        (
            "ST_ISVALID({'type': 'Polygon', 'coordinates': [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]})",
            "false",
            "false",
        ),
        (
            "ST_ISVALID({'type': 'Polygon', 'coordinates': [[[0, 0], [1, 1], [1, 0], [0, 1]]]})",
            "false",
            "false",
        ),
        ("ST_ISVALID({'type': 'LineString', 'coordinates': [[0, 0]]})", "false", "false"),
        ("ST_ISVALID({'type': 'Circle'})", "false", "false"),
        ("ST_ISVALID(42)", "false", "false"),
        ("ST_ISVALIDDETAILED(#(1, 2)#)", r#"{"valid":true}"#, r#"{"valid":true}"#),
        (
            "ST_ISVALIDDETAILED(#(133.7, -184.4)#)",
            r#"{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}"#,
            r#"{"valid":true}"#,
        ),
    ] {
        for (geospatial, expected) in [(Geospatial::Geography, globe), (Geospatial::Geometry, plane)] {
            let got = answer(&spatial(call), geospatial).unwrap();
            // Distances and areas are compared by their whole part.
            let got = if got.starts_with(|c: char| c.is_ascii_digit()) {
                got.split('.').next().unwrap().to_owned()
            } else {
                got
            };
            assert_eq!(got, expected, "{call} as {geospatial:?}");
        }
    }
}

#[test]
fn the_documented_area_agrees() {
    let call = "ST_AREA({'type': 'Polygon', 'coordinates': [[[31.8, -5], [32, -5], [32, -4.7], [31.8, -4.7], [31.8, -5]]]})";
    let area: f64 = answer(call, Geospatial::Geography).unwrap().parse().unwrap();
    assert!((area / 735_970_283.052_261_4 - 1.0).abs() < 1e-9, "{area}");
}

#[test]
fn items_have_numbers() {
    let doc = json::parse(br#"{"id":"a","_rid":"36ZyAPW+uN8NAAAAAAAAAA=="}"#, 10).unwrap();
    let program = compile("SELECT VALUE DOCUMENTID(c) FROM c", &Parameters::new()).unwrap();
    let rows = program.run_all([Row::plain(doc.as_ref())], &Context::at(0, 0)).unwrap();
    assert_eq!(rows.iter().next().unwrap(), b"13");
}
