// Entities of tables and filters of the Table API, as texts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bundle } from "./bundle.mjs";

const entity = await bundle("text/entity.ts");
const { conditionOf } = await bundle("text/odata.ts");
const { pathNames } = await bundle("text/json.ts");
const { tableNameError } = await bundle("wire/tables.ts");

const STORED = {
  s: { $t: 2, $v: "x" },
  i: { $t: 16, $v: -5 },
  l: { $t: 18, $v: "-00000000000000000005" },
  d: { $t: 1, $v: 1.5 },
  n: { $t: 1, $v: "NaN" },
  b: { $t: 8, $v: true },
  w: { $t: 9, $v: "00638396640000000001" },
  g: { $t: 0, $v: "0f8fad5b-d9cb-469f-a165-70867728950e" },
  y: { $t: 5, $v: "AAE=" },
  $$id: { $t: 2, $v: "named id" },
};

test("entities are read and written in the shape that items have", () => {
  const item = { id: "r", $id: "r", $pk: "p", ...STORED, odd: 5, ttl: 60, _etag: "x", _ts: 1 };
  const read = entity.readEntity(JSON.stringify(item));
  assert.deepEqual([read.partitionKey, read.rowKey], ["p", "r"]);
  const shown = Object.fromEntries(read.properties.map(({ name, kind, text }) => [name, [kind, text]]));
  assert.deepEqual(shown, {
    s: ["String", "x"],
    i: ["Int32", "-5"],
    l: ["Int64", "-5"],
    d: ["Double", "1.5"],
    n: ["Double", "NaN"],
    b: ["Boolean", "true"],
    w: ["DateTime", "2024-01-01T00:00:00.0000001Z"],
    g: ["Guid", "0f8fad5b-d9cb-469f-a165-70867728950e"],
    y: ["Binary", "AAE="],
    id: ["String", "named id"],
  });
  assert.deepEqual(read.rest.map(([name]) => name), ["odd", "ttl"]);
  assert.deepEqual(JSON.parse(entity.writeEntity(read)), { id: "r", $id: "r", $pk: "p", ...STORED, odd: 5, ttl: 60 });
});

test("a property whose value is not of its type is no property", () => {
  for (const value of [5, { $t: 16, $v: "5" }, { $t: 16, $v: 1e10 }, { $t: 18, $v: "x" }, { $t: 8, $v: 1 }, { $t: 7, $v: "x" }, { $t: 2 }]) {
    assert.deepEqual(entity.readEntity(JSON.stringify({ id: "r", p: value })).properties, [], JSON.stringify(value));
  }
});

test("moments and ticks are each other", () => {
  for (const [text, ticks] of [
    ["0001-01-01T00:00:00.0000000Z", 0n],
    ["1969-12-31T23:59:59.9999999Z", entity.TICKS_TO_1970 - 1n],
    ["9999-12-31T23:59:59.9999999Z", 3155378975999999999n],
    ["2024-02-29T12:34:56.7891234Z", 638448068967891234n],
  ]) {
    assert.equal(entity.momentTicks(text), ticks, text);
    assert.equal(entity.momentText(ticks), text);
  }
  for (const text of ["2024-01-01", "2024-01-01T00:00Z", "2024-01-01 02:00:00+02:00"]) {
    assert.equal(entity.momentTicks(text), entity.momentTicks("2024-01-01T00:00:00Z"), text);
  }
  for (const text of ["", "2024", "2024-02-30", "2024-13-01", "0000-01-01", "2024-01-01T25:00Z"]) assert.equal(entity.momentTicks(text), undefined, text);
});

test("values that are not of their type are told", () => {
  const { valueError } = entity;
  for (const [kind, text] of [["Int32", "2147483648"], ["Int32", ""], ["Int64", "9223372036854775808"], ["Double", "1e999"], ["Double", "x"], ["Boolean", "1"], ["Guid", "x"], ["Binary", "*"], ["DateTime", "soon"]]) {
    assert.notEqual(valueError(kind, text), "", `${kind} ${text}`);
  }
  for (const [kind, text] of [["Int32", "-2147483648"], ["Int64", "9223372036854775807"], ["Double", "-1.5e300"], ["Double", "Infinity"], ["Binary", ""], ["String", ""]]) {
    assert.equal(valueError(kind, text), "", `${kind} ${text}`);
  }
});

test("filters become conditions that ask for the type as well", () => {
  for (const [filter, condition] of [
    ["PartitionKey eq 'a''b' and RowKey ge 'x'", `(c["$pk"] = "a'b" AND c["id"] >= "x")`],
    ["Name eq 'x'", `(c["Name"]["$t"] = 2 AND c["Name"]["$v"] = "x")`],
    ["not (ok eq true)", `NOT (((c["ok"]["$t"] = 8 AND c["ok"]["$v"] = true)))`],
    [
      "d ge 1.5",
      `((c["d"]["$t"] IN (16, 1) AND c["d"]["$v"] >= 1.5) OR (c["d"]["$t"] = 18 AND c["d"]["$v"] > "00000000000000000001"))`,
    ],
    ["d eq 1.5", `((c["d"]["$t"] IN (16, 1) AND c["d"]["$v"] = 1.5) OR (c["d"]["$t"] = 18 AND false))`],
    [
      "l lt -4L",
      `((c["l"]["$t"] IN (16, 1) AND c["l"]["$v"] < -4) OR (c["l"]["$t"] = 18 AND c["l"]["$v"] > "-00000000000000000004" AND c["l"]["$v"] < "0"))`,
    ],
    ["id eq guid'0F8FAD5B-D9CB-469F-A165-70867728950E'", `(c["$$id"]["$t"] = 0 AND c["$$id"]["$v"] = "0f8fad5b-d9cb-469f-a165-70867728950e")`],
    ["Timestamp ge datetime'1970-01-01T00:00:01Z'", "WRITTENAT(c) >= 10000000"],
    ["w eq datetime'2024-01-01'", `(c["w"]["$t"] = 9 AND c["w"]["$v"] = "00638396640000000000")`],
  ]) {
    assert.equal(conditionOf(filter), condition, filter);
  }
  for (const filter of ["Age", "Age gt", "Age is 4", "Age eq soon", "(Age eq 4", "Age eq 4 5", "RowKey eq 4", "Age eq 4 %", "w eq datetime'soon'", "x eq X'00'"]) {
    assert.throws(() => conditionOf(filter), undefined, filter);
  }
});

test("names in paths may have quotes of either kind", () => {
  assert.deepEqual(["/'$pk'", '/"$pk"', "/$pk", "/a/'b/c'/d", "/it's"].map(pathNames), [["$pk"], ["$pk"], ["$pk"], ["a", "b/c", "d"], ["it's"]]);
});

test("tables have the names that the Table API allows", () => {
  for (const name of ["", "t", "My Table", "_x", "1st", "unicode-\u00e4", "a(b)", "tables", "$Batch", "\u{1F600}".repeat(254)]) assert.equal(tableNameError(name), "", name);
  for (const name of ["a/b", "\\", "#", "?", "a ", "a\n", "x".repeat(255), "Tables", "Tables('t')", "$batch", "t()", "t(RowKey='r')"]) assert.notEqual(tableNameError(name), "", name);
});
