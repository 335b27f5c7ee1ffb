// Who is signed in, and what the whole page knows: the account and the tree of databases and containers.

import { computed, signal } from "@preact/signals";
import { Client, Refused } from "../wire/client.ts";
import { fail } from "./notices.ts";
import {
  listContainers,
  listDatabases,
  listOffers,
  readAccount,
  type Account,
  type Container,
  type Database,
  type Offer,
} from "../wire/resources.ts";
import { readServer, type Server } from "../wire/manage.ts";

/** The key of local emulators; it is published and opens nothing but a server on loopback. */
export const DEVELOPMENT_KEY =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/** Databases whose containers are all listed at once. */
const EAGER_DATABASES = 100;
const KEPT_KEY = "orrery.key";
const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/;

export const onLoopback = () => LOOPBACK.test(location.hostname);

export interface Session {
  client: Client;
  account: Account;
}

export interface Branch {
  database: Database;
  /** Undefined until the branch has been opened. */
  containers: Container[] | undefined;
}

export const session = signal<Session | null>(null);
export const tree = signal<Branch[] | null>(null);
/** Whether the databases could not be listed the last time. */
export const unlisted = signal(false);
/** Undefined while unknown, null where the account is serverless. */
export const offers = signal<Offer[] | null | undefined>(undefined);
/** What the server says of itself; null until it has. */
export const server = signal<Server | null>(null);
export const serverless = computed(() => offers.value === null);

/** The client of the user who is signed in. */
export function client(): Client {
  const current = session.value;
  if (current === null) throw new Error("Nobody is signed in.");
  return current.client;
}

export const keptKey = (): string | null => sessionStorage.getItem(KEPT_KEY);

export async function signIn(key: string): Promise<void> {
  const found = new Client(key.trim());
  const account = await readAccount(found);
  sessionStorage.setItem(KEPT_KEY, key.trim());
  session.value = { client: found, account };
  // The key has been taken: what cannot be read now is told, and can be read later.
  await Promise.all([
    refreshTree().catch((error: unknown) => fail("Cannot list the databases", error)),
    refreshOffers().catch((error: unknown) => fail("Cannot read the throughput of databases and containers", error)),
    refreshServer().catch((error: unknown) => fail("Cannot read the ports and budgets of the server", error)),
  ]);
}

export function signOut(): void {
  sessionStorage.removeItem(KEPT_KEY);
  session.value = null;
  tree.value = null;
  unlisted.value = false;
  offers.value = undefined;
  server.value = null;
  shown.clear();
}

/** Questions are numbered; what is shown knows which one it answers. */
let asked = 0;
const shown = new Map<string, number>();

/**
 * Asks for something. Answers may overtake each other, and the session may end before they come: one that is older than
 * what is shown, or nobody's any more, is no news and undefined.
 */
async function newsOf<T>(what: string, ask: (client: Client) => Promise<T>): Promise<T | undefined> {
  const mine = session.value;
  const turn = (asked += 1);
  const answer = await ask(client()).catch((error: unknown) => {
    if (session.value === mine) throw error;
    return undefined;
  });
  if (session.value !== mine || turn < (shown.get(what) ?? 0)) return undefined;
  shown.set(what, turn);
  return answer;
}

export async function refreshTree(): Promise<void> {
  const databases = await newsOf("databases", listDatabases).catch((error: unknown) => {
    unlisted.value = true;
    throw error;
  });
  if (databases === undefined) return;
  unlisted.value = false;
  const before = new Map((tree.value ?? []).map((branch) => [branch.database._rid, branch]));
  tree.value = databases.map((database) => ({ database, containers: before.get(database._rid)?.containers }));
  // Few databases are shown with all they hold; many are opened one by one.
  const eager = databases.length <= EAGER_DATABASES ? databases : databases.filter((one) => before.get(one._rid)?.containers);
  await Promise.all(eager.map((database) => refreshBranch(database.id)));
}

/** A database that was deleted since it was listed is no error; it leaves the tree. */
const isGone = (error: unknown) => error instanceof Refused && error.status === 404;

/** Makes sure that the containers of a database are known, or will be. */
export function openBranch(db: string, failed: (error: unknown) => void): void {
  const branch = tree.value?.find((one) => one.database.id === db);
  if (branch !== undefined && branch.containers === undefined) refreshBranch(db).catch(failed);
}

/** Lists the containers of all databases that were not opened yet. */
export async function openAllBranches(): Promise<void> {
  const unopened = (tree.value ?? []).filter((branch) => branch.containers === undefined);
  await Promise.all(unopened.map((branch) => refreshBranch(branch.database.id)));
}

export async function refreshBranch(db: string): Promise<void> {
  const containers = await newsOf(`containers of ${db}`, (client) =>
    listContainers(client, db).catch((error: unknown) => {
      if (isGone(error)) return null;
      throw error;
    }),
  );
  if (containers === undefined) return;
  const branches = tree.value ?? [];
  if (containers === null) tree.value = branches.filter((branch) => branch.database.id !== db);
  else tree.value = branches.map((branch) => (branch.database.id === db ? { ...branch, containers } : branch));
}

export async function refreshOffers(): Promise<void> {
  const found = await newsOf("offers", async (client) => (await listOffers(client)) ?? null);
  if (found !== undefined) offers.value = found;
}

export async function refreshServer(): Promise<void> {
  const found = await newsOf("server", readServer);
  if (found !== undefined) server.value = found;
}

export function findContainer(db: string, coll: string): Container | undefined {
  return tree.value?.find((branch) => branch.database.id === db)?.containers?.find((one) => one.id === coll);
}

export function findOffer(rid: string): Offer | undefined {
  return offers.value?.find((offer) => offer.offerResourceId === rid);
}
