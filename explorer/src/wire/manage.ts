// The server's management API, as docs/management-api.md describes it.

import type { Client } from "./client.ts";
import type { Place } from "./resources.ts";

export type Window = "minute" | "hour" | "day";

export interface Rate {
  requests: number;
  requestUnits: number;
  throttled: number;
}

export interface Use {
  total: Rate;
  perSecond: Rate;
  perSecondOfMinute: Rate;
  slots: {
    requests: number[];
    requestUnits: number[];
    highestRequestUnits: number[];
    throttled: number[];
    bytes: number[];
  };
}

export interface Partition {
  id: string;
  minInclusive: string;
  maxExclusive: string;
  /** The share of the key space, from 0 to 1. */
  from: number;
  to: number;
  parents: string[];
  items: number;
  bytes: number;
  /** Request units a second that it may use; 0 where there is no limit. */
  throughput: number;
  use: Use;
}

export interface Insight {
  window: Window;
  slotSeconds: number;
  until: number;
  whole: Use;
  partitions: Partition[];
}

export interface Heat {
  slotSeconds: number;
  until: number;
  partitions: { id: string; from: number; to: number; requestUnits: number[][]; requests: number[][] }[];
}

export interface HotKey {
  partition: string;
  partitionKey: unknown;
  requestUnits: number;
  requests: number;
  throttled: number;
  error: number;
}

export interface LargeKey {
  partition: string;
  effectivePartitionKey: string;
  partitionKey: unknown;
  bytes: number;
  items: number | null;
  percentOfLimit: number;
}

export interface Alert {
  kind: string;
  database: string;
  container: string;
  partition: string;
  partitionKey: unknown;
  since: number;
  message: string;
}

const containerPath = (place: Place) =>
  `/_orrery/dbs/${encodeURIComponent(place.db)}/colls/${encodeURIComponent(place.coll)}`;

async function get<T>(client: Client, path: string, signal?: AbortSignal): Promise<T> {
  return JSON.parse((await client.manage("GET", path, { signal })).text) as T;
}

async function post<T>(client: Client, path: string, body: unknown): Promise<T> {
  const answer = await client.manage("POST", path, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (answer.text === "" ? {} : JSON.parse(answer.text)) as T;
}

/** Where the server listens, and what its partitions may do. */
export interface Server {
  version: string;
  account: string;
  ports: { nosql: number; table?: number };
  limits: { partitionThroughput: number; newPartitionThroughput: number; partitionBytes: number; logicalPartitionBytes: number };
}

export const readServer = (client: Client) => get<Server>(client, "/_orrery/server");

export const readInsight = (client: Client, place: Place, window: Window, signal?: AbortSignal) =>
  get<Insight>(client, `${containerPath(place)}/partitions?window=${window}`, signal);

export const readHeat = (client: Client, place: Place, window: "minute" | "hour", signal?: AbortSignal) =>
  get<Heat>(client, `${containerPath(place)}/heat?window=${window}`, signal);

export const readKeys = (client: Client, place: Place, window: Window, signal?: AbortSignal) =>
  get<{ hottest: HotKey[]; largest: LargeKey[] }>(client, `${containerPath(place)}/keys?window=${window}&count=15`, signal);

export const readAlerts = async (client: Client, signal?: AbortSignal) =>
  (await get<{ alerts: Alert[] }>(client, "/_orrery/alerts", signal)).alerts;

export const splitPartition = (client: Client, place: Place, id: string, children: number) =>
  post<{ children: string[] }>(client, `${containerPath(place)}/partitions/${encodeURIComponent(id)}/split`, { children });

export const mergePartitions = (client: Client, place: Place, left: string, right: string) =>
  post<{ child: string }>(client, `${containerPath(place)}/partitions/merge`, { left, right });

/** Throughput as it is now: autoscale moves, and a raise may wait for splits. */
export interface ThroughputState {
  offer: { kind: string; throughput: number; current: number; minimum: number; highest: number; pending: boolean } | null;
  throughputPolicy: string;
}

export const readThroughput = (client: Client, place: Place, signal?: AbortSignal) =>
  get<ThroughputState>(client, `${containerPath(place)}/throughput?hours=1`, signal);

// Recorded workloads and advice.

export interface Recording {
  state: "recording" | "stopped";
  seconds: number;
  operations: number;
  missed: number;
}

export const orderRecording = (client: Client, place: Place, action: "start" | "stop") =>
  post<Recording>(client, `${containerPath(place)}/workload`, { action });

/** The recorded workload, in the form that the advisor reads. */
export const readWorkload = (client: Client, place: Place) => get<object>(client, `${containerPath(place)}/workload`);

export interface Advice {
  summary: string;
  recommended: string;
  partitions: number;
  throughput: number;
  horizonDays: number;
  logicalPartitionLimit: number;
  candidates: Candidate[];
  notes?: string[];
}

export interface Candidate {
  key: string;
  kind: string;
  score: number;
  verdict: string;
  words: string;
  findings: { code: string; against: boolean; words: string }[];
  measures: { storage: number; throughput: number; room: number; routing: number; transactions: number };
  distinct: number | null;
  largest: { key?: string; bytesToday: number; bytesAtHorizon: number; daysUntilFull: number | null };
  load: { total: number; budget: number; busiest: number; needed: number; throttled: number };
  partitions: { unitsPerSecond: number; bytesAtHorizon: number; keys: { key: string; unitsPerSecond: number }[] }[];
}

export async function askAdvice(client: Client, place: Place, question: object, signal: AbortSignal): Promise<Advice> {
  const answer = await client.manage("POST", `${containerPath(place)}/advice`, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...question, format: "json" }),
    signal,
  });
  return JSON.parse(answer.text) as Advice;
}

// Copy jobs.

export interface ContainerName {
  database: string;
  container: string;
}

export interface Job {
  id: string;
  kind: "copy" | "rekey";
  mode: "online" | "offline";
  state: "running" | "paused" | "completing" | "completed" | "failed" | "cancelled";
  phase: "copying" | "following" | "over";
  source: ContainerName;
  target: ContainerName;
  rateLimit: number;
  completesItself: boolean;
  created: number;
  ended: number | null;
  percent: number;
  itemsTotal: number;
  itemsCopied: number;
  changesApplied: number;
  changesPending: number;
  itemsPerSecond: number;
  secondsRemaining: number | null;
  collisions?: { count: number; examples: { cause: string; id: string; sourceKey: string; targetKey: string }[] };
  failure?: string;
  cutOver?: { heldMs: number };
}

export type NewJob =
  | { kind: "copy"; source: ContainerName; target: ContainerName; mode: "online" | "offline"; rate?: number; completesItself: boolean }
  | { kind: "rekey"; container: ContainerName; partitionKey: { paths: string[]; kind: string; version: number }; rate?: number; completesItself: boolean };

export const listJobs = async (client: Client, signal?: AbortSignal) => (await get<{ jobs: Job[] }>(client, "/_orrery/jobs", signal)).jobs;

export const createJob = (client: Client, job: NewJob) => post<Job>(client, "/_orrery/jobs", job);

export const orderJob = (client: Client, id: string, action: "pause" | "resume" | "cancel" | "complete") =>
  post<Job>(client, `/_orrery/jobs/${encodeURIComponent(id)}/${action}`, {});

export const deleteJob = (client: Client, id: string) => client.manage("DELETE", `/_orrery/jobs/${encodeURIComponent(id)}`);
