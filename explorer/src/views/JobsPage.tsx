// Copies and changes of keys, with how far they are.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Confirm } from "../parts/Dialog.tsx";
import { Status } from "../parts/Status.tsx";
import { explain, fail, say } from "../state/notices.ts";
import { client, refreshTree } from "../state/session.ts";
import { watch } from "../state/watch.ts";
import { deleteJob, listJobs, orderJob, type Job } from "../wire/manage.ts";
import { CopyDialog } from "./NewJob.tsx";
import { numberText } from "./figures.ts";

const OVER = new Set<Job["state"]>(["completed", "failed", "cancelled"]);

/** The jobs, looked at again and again while the page is open, and more often while one of them runs. */
function useJobs() {
  const [jobs, setJobs] = useState<Job[] | null>(null);
  const [problem, setProblem] = useState("");
  const wake = useRef<() => void>(() => undefined);
  useLayoutEffect(() => {
    let running = 0;
    const settled = new Set<string>();
    const watching = watch({
      read: (signal) => listJobs(client(), signal),
      seen: (found) => {
        const over = found.filter((job) => OVER.has(job.state)).map((job) => job.id);
        running = found.length - over.length;
        // A job that is over may have put another container into the tree, also before anybody looked at the job.
        if (over.some((id) => !settled.has(id))) refreshTree().catch((error: unknown) => fail("Cannot refresh", error));
        over.forEach((id) => settled.add(id));
        setJobs(found);
        setProblem("");
      },
      failed: (error) => setProblem(explain(error)),
      every: () => (running > 0 ? 500 : 3000),
    });
    wake.current = watching.wake;
    return watching.stop;
  }, []);
  return { jobs, problem, wake: () => wake.current() };
}

export function JobsPage() {
  const { jobs, problem, wake } = useJobs();
  const [copying, setCopying] = useState(false);
  const started = () => {
    setCopying(false);
    wake();
  };
  return (
    <section class="page wide">
      <h1>Copy jobs</h1>
      <p class="soft">Copies from one container into another, and changes of partition keys. They survive restarts of the server.</p>
      <div class="row-of">
        <button type="button" class="primary" onClick={() => setCopying(true)}>
          Copy a container
        </button>
        <span class="soft">To change a key, compare keys in the Advisor of a container first.</span>
      </div>
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {jobs !== null && jobs.length === 0 && <p class="soft">No job yet.</p>}
      {(jobs ?? []).map((job) => (
        <JobCard key={job.id} job={job} onChanged={wake} />
      ))}
      {copying && <CopyDialog onClose={() => setCopying(false)} onStarted={started} />}
    </section>
  );
}

function JobCard(props: { job: Job; onChanged: () => void }) {
  const { job } = props;
  const over = OVER.has(job.state);
  return (
    <article class="job" data-job={job.id} data-state={job.state}>
      <header class="row-of">
        <h2>
          {job.kind === "copy" ? "Copy" : "Change of the partition key of"} <bdi>{job.source.database}/{job.source.container}</bdi>
          {job.kind === "copy" && (
            <>
              {" "}
              into <bdi>{job.target.database}/{job.target.container}</bdi>
            </>
          )}
        </h2>
        <Status state={job.state} />
      </header>
      <progress max={100} value={job.percent} aria-label={`Progress of the job ${job.id}`} />
      <p>
        {numberText(job.percent)} %, {job.itemsCopied.toLocaleString("en")} of {job.itemsTotal.toLocaleString("en")} items,{" "}
        {job.changesApplied.toLocaleString("en")} changes followed{job.changesPending > 0 && `, ${job.changesPending.toLocaleString("en")} to go`}
        {!over && `; ${job.itemsPerSecond.toLocaleString("en")} items a second`}
        {!over && job.secondsRemaining !== null && `, ${numberText(job.secondsRemaining)} s left`}
        {job.cutOver !== undefined && `; writes waited ${job.cutOver.heldMs} ms`}
      </p>
      {job.failure !== undefined && <p class="problem">{job.failure}</p>}
      {job.collisions !== undefined && (
        <details>
          <summary>{job.collisions.count.toLocaleString("en")} items have no place in the target</summary>
          <ul>
            {job.collisions.examples.map((one, index) => (
              <li key={index}>
                <bdi>{one.id}</bdi>: {one.cause}, from {one.sourceKey} to {one.targetKey}
              </li>
            ))}
          </ul>
        </details>
      )}
      <JobActions job={job} onChanged={props.onChanged} />
    </article>
  );
}

function JobActions(props: { job: Job; onChanged: () => void }) {
  const { job } = props;
  const [asking, setAsking] = useState<"cancel" | "delete" | null>(null);
  const act = async (what: string, action: () => Promise<unknown>) => {
    try {
      await action();
      setAsking(null);
      say(what);
      props.onChanged();
    } catch (error) {
      fail(`Cannot do this with the job ${job.id}`, error);
    }
  };
  const order = (action: "pause" | "resume" | "complete", what: string) => () => void act(what, () => orderJob(client(), job.id, action));
  return (
    <>
      <div class="row-of">
        {job.state === "running" && (
          <button type="button" onClick={order("pause", "Paused")}>
            Pause
          </button>
        )}
        {job.state === "paused" && (
          <button type="button" onClick={order("resume", "Goes on")}>
            Resume
          </button>
        )}
        {job.state === "running" && !job.completesItself && job.mode === "online" && (
          <button type="button" class="primary" onClick={order("complete", "Completing")}>
            Complete
          </button>
        )}
        {OVER.has(job.state) ? (
          <button type="button" class="quiet" onClick={() => setAsking("delete")}>
            Forget
          </button>
        ) : (
          <button type="button" class="danger" onClick={() => setAsking("cancel")}>
            Cancel job
          </button>
        )}
      </div>
      {asking === "cancel" && (
        <Confirm title="Cancel this job?" action="Cancel job" onConfirm={() => act("Cancelled", () => orderJob(client(), job.id, "cancel"))} onClose={() => setAsking(null)}>
          <p>The source stays as it is. What was copied so far is given up with a change of key, and stays in the target of a copy.</p>
        </Confirm>
      )}
      {asking === "delete" && (
        <Confirm title="Forget this job?" action="Forget" onConfirm={() => act("Forgotten", () => deleteJob(client(), job.id))} onClose={() => setAsking(null)}>
          <p>Its report will be gone; no item is touched.</p>
        </Confirm>
      )}
    </>
  );
}
