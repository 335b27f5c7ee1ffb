// A query's plan as steps from the items in reach to the rows, each with what went through it and how long it took.

import type { Condition, Figures, Plan } from "../wire/resources.ts";

interface Step {
  title: string;
  amount: number;
  noun: string;
  /** Microseconds; undefined where nobody measures. */
  micros?: number;
  notes: Note[];
}

interface Note {
  text: string;
  depth: number;
}

/** The leaves of the filter with what joins them, if they pass. */
function notesOf(condition: Condition, passes: (leaf: { exact: boolean; used: boolean }) => boolean, depth = 0): Note[] {
  if (typeof condition === "string") return [];
  if ("path" in condition) return passes(condition) ? [{ text: `${condition.path} ${condition.condition}`, depth }] : [];
  const [word, list] = "all" in condition ? (["all of", condition.all] as const) : (["any of", condition.any] as const);
  const inner = list.flatMap((one) => notesOf(one, passes, depth + 1));
  return inner.length > 1 ? [{ text: word, depth }, ...inner] : inner.map((note) => ({ ...note, depth }));
}

function stepsOf(plan: Plan, figures: Figures): Step[] {
  const steps: Step[] = [{ title: "In reach", amount: figures.scopeItems, noun: "items", notes: [] }];
  if (plan.method !== "scan") {
    const notes = notesOf(plan.filter, (leaf) => leaf.used);
    if (plan.method === "index order" && plan.order !== undefined) notes.push({ text: `in the order of ${plan.order}`, depth: 0 });
    steps.push({ title: plan.method[0]?.toUpperCase() + plan.method.slice(1), amount: figures.indexEntries, noun: "entries", micros: figures.indexLookupMicros, notes });
  }
  const title = plan.method === "scan" ? "Scan" : "Load";
  steps.push({ title, amount: figures.documents, noun: "items", micros: figures.documentLoadMicros, notes: [{ text: bytes(figures.documentBytes), depth: 0 }] });
  const checked = notesOf(plan.filter, (leaf) => !leaf.used || !leaf.exact);
  if (plan.order !== undefined && plan.method !== "index order") checked.push({ text: `order by ${plan.order}`, depth: 0 });
  steps.push({ title: "Evaluate", amount: figures.rows, noun: "rows", micros: figures.evaluationMicros, notes: checked });
  return steps;
}

const bytes = (value: number) => (value < 1024 ? `${value} bytes` : `${(value / 1024).toLocaleString("en", { maximumFractionDigits: 1 })} KB`);
const time = (micros: number) => `${(micros / 1000).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} ms`;

export function PlanGraph(props: { plan: Plan; figures: Figures }) {
  const steps = stepsOf(props.plan, props.figures);
  const most = Math.max(1, ...steps.map((step) => step.amount));
  return (
    <ol class="plan-graph" aria-label="Plan, step by step" data-plan-graph>
      {steps.map((step) => (
        <li key={step.title}>
          <strong>{step.title}</strong>
          <span class="amount">
            {step.amount.toLocaleString("en")} <small>{step.noun}</small>
          </span>
          <span class="share" aria-hidden="true">
            <i style={{ width: `${Math.max(step.amount > 0 ? 2 : 0, (step.amount / most) * 100)}%` }} />
          </span>
          {step.micros !== undefined && <span class="soft">{time(step.micros)}</span>}
          {step.notes.map((note, index) => (
            <code key={index} style={{ marginLeft: `${note.depth * 0.8}rem` }}>
              {note.text}
            </code>
          ))}
        </li>
      ))}
    </ol>
  );
}
