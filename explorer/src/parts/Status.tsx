// What state something is in, as a word with a colour: running, done, failed and waiting are told apart at a glance.

const KINDS: Record<string, "running" | "done" | "failed" | "waiting"> = {
  running: "running",
  completing: "running",
  recording: "running",
  done: "done",
  completed: "done",
  failed: "failed",
  paused: "waiting",
  cancelled: "waiting",
  more: "waiting",
};

export function Status(props: { state: string; text?: string }) {
  return (
    <span class="status" data-status={KINDS[props.state] ?? "waiting"}>
      {props.text ?? props.state}
    </span>
  );
}
