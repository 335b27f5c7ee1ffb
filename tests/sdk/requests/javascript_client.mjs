// The program of the JavaScript SDK; see main.py.
import { createInterface } from "node:readline";
import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: process.env.ORRERY_ENDPOINT, key: process.env.ORRERY_KEY });
const { database } = await client.databases.create({ id: `js-${Date.now().toString(36)}` });
const definition = { id: "items", partitionKey: { paths: ["/pk"] }, throughput: 24000 };
const { container } = await database.containers.create(definition);
await container.items.create({ id: "first", pk: "a" });
await container.item("first", "a").read();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  for (let number = 0; number < 100; number++) {
    if (line === "reads") await container.item("first", "a").read();
    else await container.items.create({ id: `i${number}`, pk: `p${number % 10}` });
  }
  console.log("done");
}
client.dispose();
