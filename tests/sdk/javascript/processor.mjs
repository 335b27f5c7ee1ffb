// The processor pattern: one lease for each feed range, kept as an item of a container. A host owns a range while its
// lease names it and is fresh; every change of a lease is guarded by its ETag, so two hosts cannot own one range.
import { ChangeFeedStartFrom, StatusCodes } from "@azure/cosmos";

export class Processor {
  /** Makes the leases that are not there yet; each starts from now. */
  static async create({ source, leases, host, handle, expireMs = 600_000 }) {
    const ranges = await source.getFeedRanges();
    for (const range of ranges) {
      const lease = { id: `${range.minInclusive}-${range.maxExclusive}`, owner: null, renewed: 0, continuation: null };
      const iterator = source.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Now(range) });
      lease.continuation = (await iterator.readNext()).continuationToken;
      try {
        await leases.items.create(lease);
      } catch (error) {
        // Another host was here first.
        if (error.code !== StatusCodes.Conflict) throw error;
      }
    }
    return new Processor({ source, leases, host, handle, expireMs });
  }

  constructor(parts) {
    Object.assign(this, parts);
    this.owned = 0;
  }

  /** One round: balance the leases, then read what is new on those that are ours. */
  async run() {
    await this.#balance();
    const { resources } = await this.leases.items.query({
      query: "SELECT * FROM c WHERE c.owner = @host",
      parameters: [{ name: "@host", value: this.host }],
    }).fetchAll();
    this.owned = resources.length;
    for (const lease of resources) await this.#process(lease);
  }

  /** Gives all leases back. */
  async stop() {
    const { resources } = await this.leases.items.readAll().fetchAll();
    for (const lease of resources.filter((lease) => lease.owner === this.host)) {
      await this.#replace(lease, { owner: null });
    }
    this.owned = 0;
  }

  async #balance() {
    const { resources: all } = await this.leases.items.readAll().fetchAll();
    const isFree = (lease) => lease.owner === null || Date.now() - lease.renewed > this.expireMs;
    const hosts = new Set(all.filter((lease) => !isFree(lease)).map((lease) => lease.owner).concat(this.host));
    const share = Math.ceil(all.length / hosts.size);
    const mine = all.filter((lease) => lease.owner === this.host).length;
    const free = all.filter(isFree);
    const others = all.filter((lease) => !isFree(lease) && lease.owner !== this.host);
    // What nobody has is taken; else one lease from a host that has more than its share.
    const rich = others.filter((lease) => others.filter((other) => other.owner === lease.owner).length > share);
    const taken = free.concat(rich.slice(0, 1)).slice(0, Math.max(0, share - mine));
    for (const lease of taken) await this.#replace(lease, { owner: this.host });
  }

  async #process(lease) {
    let current = lease;
    for (;;) {
      const changeFeedStartFrom = ChangeFeedStartFrom.Continuation(current.continuation);
      const page = await this.source.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount: 10 }).readNext();
      if (page.statusCode === StatusCodes.NotModified) return;
      try {
        await this.handle(page.result);
      } catch {
        // The continuation stays, so the same changes come again.
        return;
      }
      current = await this.#replace(current, { continuation: page.continuationToken });
      if (!current) return;
    }
  }

  /** The new version of the lease, or nothing when it was changed by another host. */
  async #replace(lease, change) {
    const accessCondition = { type: "IfMatch", condition: lease._etag };
    const body = { ...lease, ...change, renewed: Date.now() };
    try {
      return (await this.leases.item(lease.id, lease.id).replace(body, { accessCondition })).resource;
    } catch (error) {
      if (error.code === StatusCodes.PreconditionFailed) return undefined;
      throw error;
    }
  }
}
