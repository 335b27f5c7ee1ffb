// The parts of the page that need no browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bundle } from "./bundle.mjs";

const json = await bundle("text/json.ts");
const { runQuery } = await bundle("wire/resources.ts");
const { sign } = await bundle("wire/signature.ts");
const { Chronicle, History } = await bundle("state/heat.ts");

const TEXTS = [
  "{}",
  "[]",
  '{"a":[],"b":{}}',
  '{"id":"1","big":12345678901234567890,"tiny":1.50,"exp":1E+400}',
  '{"a\\"b":"x\\\\","c":["}","]",{"d":null}]}',
  '[1,"two",[3],{"four":4},true,null]',
  '{"deep":' + "[".repeat(120) + "]".repeat(120) + "}",
];

test("laying out moves white space and nothing else", () => {
  for (const text of TEXTS) {
    const shown = json.layOut(text);
    assert.deepEqual(JSON.parse(shown), JSON.parse(text), text);
    assert.equal(json.layOut(shown), shown, text);
    assert.equal(shown.replace(/\s/g, ""), text.replace(/\s/g, ""), text);
  }
  assert.match(json.layOut(TEXTS[3]), /12345678901234567890/);
});

test("elements and members are cut out as they stand", () => {
  assert.deepEqual(json.elements(' [ 1.50 , "a,]" , {"b":[1]} ] '), ["1.50", '"a,]"', '{"b":[1]}']);
  assert.deepEqual([...json.members('{"a":1.50,"b":{"c":"}"}}')], [["a", "1.50"], ["b", '{"c":"}"}']]);
  assert.equal(json.withoutSystem('{"id":"1","_ts":5,"n":1.50}'), '{\n  "id": "1",\n  "n": 1.50\n}');
});

test("files hold an array, an item, or lines", () => {
  assert.equal(json.itemsOfFile('[{"id":"1"},{"id":"2"}]').length, 2);
  assert.equal(json.itemsOfFile('\uFEFF{"id":"1"}').length, 1);
  assert.equal(json.itemsOfFile('{"id":"1"}\r\n\r\n{"id":"2"}\n').length, 2);
  assert.equal(json.itemsOfFile(" \n").length, 0);
  assert.throws(() => json.itemsOfFile('{"id":"1"}\n{"id":'), /Line 2/);
});

test("paths reach values, and CSV quotes what it must", () => {
  assert.equal(json.valueAt({ a: { "b/c": 7 } }, '/a/"b/c"'), 7);
  assert.equal(json.valueAt({ a: [1] }, "/a/0"), undefined);
  const rows = [{ a: 'x,"y"', b: { c: 1 } }, { a: "line\nbreak" }, 5].map((row) => JSON.stringify(row));
  const csv = json.toCsv([...rows, '{"a":9007199254740993}']);
  assert.equal(csv, 'a,b,value\r\n"x,""y""","{""c"":1}",\r\n"line\nbreak",,\r\n,,5\r\n9007199254740993,,\r\n');
});

test("a signature is that of the documented example", () => {
  // The example of the service's documentation: GET dbs/ToDoList, with its published key and date.
  const key = Uint8Array.from(Buffer.from("dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==", "base64"));
  const made = sign(key, "GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT");
  assert.equal(made, "type%3Dmaster%26ver%3D1.0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D");
});

const use = (units) => ({
  perSecond: {}, slots: { requests: units, requestUnits: units, highestRequestUnits: units, throttled: units, bytes: units },
});
const insight = (until, partitions, window = "minute") => ({ window, slotSeconds: 1, until, whole: use([0, 0, 0]), partitions });
const WHOLE = [{ id: "0", from: 0, to: 1, parents: [], use: use([5, 6, 7]) }];
const HALVES = [
  { id: "1", from: 0, to: 0.5, parents: ["0"], use: use([0, 0, 2]) },
  { id: "2", from: 0.5, to: 1, parents: ["0"], use: use([0, 0, 1]) },
];

test("the heat of a parent stays when its children begin with nothing", () => {
  const history = new History();
  history.take(insight(100, WHOLE), null);
  history.take(insight(102, HALVES), null);
  const columns = history.columns();
  assert.deepEqual(columns.map((column) => column.spans.length), [1, 1, 2, 2, 2]);
  assert.deepEqual(columns[1].spans[0].requestUnits, [6]);
});

test("splits and merges are noted whatever window is looked at", () => {
  const chronicle = new Chronicle();
  chronicle.take(insight(100, WHOLE));
  chronicle.take(insight(102, HALVES, "hour"));
  chronicle.take(insight(104, [{ id: "3", from: 0, to: 1, parents: ["1", "2"], use: use([0, 0, 0]) }], "day"));
  assert.deepEqual(chronicle.events.map(({ text }) => text), ["Partitions 1 and 2 merged into 3", "Partition 0 split into 1 and 2"]);
});

test("values of parameters are sent as they were typed", async () => {
  let sent = "";
  const client = {
    resource: async (verb, type, link, { body }) => {
      sent = body;
      return { text: '{"Documents":[]}', headers: new Headers(), charge: 0, lines: [], milliseconds: 0, throttled: 0 };
    },
  };
  const parameters = [...json.members('{"@n": 9007199254740993, "@s": "a\\"}b"}')].map(([name, json]) => ({ name, json }));
  const asked = { text: 'SELECT "x"', parameters, pageSize: 1, access: "auto", continuation: null };
  await runQuery(client, { db: "d", coll: "c" }, asked);
  assert.match(sent, /"value":9007199254740993[,}]/);
  const read = JSON.parse(sent);
  assert.equal(read.query, 'SELECT "x"');
  assert.deepEqual(read.parameters[1], { name: "@s", value: 'a"}b' });
});
