// What the server tells about a query: its price line by line, times, indexes, advice and the plan.

import { ChargeTable } from "../parts/Charge.tsx";
import { JsonTree } from "../parts/JsonTree.tsx";
import type { ChargeLine } from "../wire/client.ts";
import type { Figures, QueryPage } from "../wire/resources.ts";
import { PlanGraph } from "../parts/PlanGraph.tsx";
import type { Run } from "./useQuery.ts";

const METRICS: Record<string, string> = {
  totalExecutionTimeInMs: "Total time (ms)",
  queryCompileTimeInMs: "Compiling (ms)",
  queryLogicalPlanBuildTimeInMs: "Planning (ms)",
  queryPhysicalPlanBuildTimeInMs: "Building the plan (ms)",
  queryOptimizationTimeInMs: "Optimising (ms)",
  indexLookupTimeInMs: "Index lookup (ms)",
  documentLoadTimeInMs: "Loading items (ms)",
  VMExecutionTimeInMs: "Evaluation (ms)",
  systemFunctionExecuteTimeInMs: "Built-in functions (ms)",
  userFunctionExecuteTimeInMs: "User-defined functions (ms)",
  writeOutputTimeInMs: "Writing the answer (ms)",
  retrievedDocumentCount: "Items looked at",
  retrievedDocumentSize: "Bytes looked at",
  outputDocumentCount: "Rows returned",
  outputDocumentSize: "Bytes returned",
  indexUtilizationRatio: "Share found by the index",
};

export function QueryFacts(props: { run: Run | null; lines: ChargeLine[] }) {
  const { run } = props;
  const first = run?.pages[0];
  if (run === null || first === undefined) return <p class="soft pad">Run a query to see what it costs and how it was answered.</p>;
  const newest = run.pages[run.pages.length - 1] ?? first;
  return (
    <div class="facts scroll" tabIndex={0} role="region" aria-label="About this query">
      <section class="whole">
        <h3>Plan</h3>
        <p>
          Method: <strong data-access>{newest.access}</strong>
        </p>
        {first.plan !== undefined && (
          <>
            <PlanGraph plan={first.plan.plan} figures={figuresOf(run.pages)} />
            <details>
              <summary>Plan of the first page as text</summary>
              <pre class="plan" data-plan>
                {first.plan.text}
              </pre>
            </details>
          </>
        )}
      </section>
      <section>
        <h3>Charge</h3>
        <ChargeTable total={run.charge} lines={props.lines} />
        <p class="help">
          {run.pages.length === 1 ? "One page" : `${run.pages.length} pages`}
          {run.pages.some((page) => page.throttled > 0) ? ", throttled in between" : ""}.
        </p>
      </section>
      <section>
        <h3>Advice</h3>
        {first.advice.length === 0 ? (
          <p class="soft">None: nothing in the text of this query stands out.</p>
        ) : (
          <ul data-advice>
            {first.advice.map((one, index) => (
              <li key={index}>
                <strong>{one.Id}</strong> {adviceText(one.Id)} {(one.Params ?? []).join(", ")}
              </li>
            ))}
          </ul>
        )}
      </section>
      <section>
        <h3>Indexes</h3>
        {first.indexes === undefined ? <p class="soft">Nothing is known.</p> : <JsonTree json={JSON.stringify(first.indexes)} open />}
      </section>
      <section>
        <h3>Metrics of the last page</h3>
        <table class="plain" data-metrics>
          <tbody>
            {[...newest.metrics].map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{METRICS[name] ?? name}</th>
                <td class="number">{value.toLocaleString("en")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}

/** What went through the steps of all pages. */
function figuresOf(pages: QueryPage[]): Figures {
  const sum = (name: keyof Figures) => pages.reduce((all, page) => all + (page.plan?.plan.figures[name] ?? 0), 0);
  return {
    // Pages may look at the same partition or at different ones, so this is the least that was in reach.
    scopeItems: Math.max(sum("documents"), ...pages.map((page) => page.plan?.plan.figures.scopeItems ?? 0)),
    indexEntries: sum("indexEntries"),
    documents: sum("documents"),
    documentBytes: sum("documentBytes"),
    rows: sum("rows"),
    indexLookupMicros: sum("indexLookupMicros"),
    documentLoadMicros: sum("documentLoadMicros"),
    evaluationMicros: sum("evaluationMicros"),
  };
}

/** What the numbers of the service's query advice stand for, in our words. */
function adviceText(id: string): string {
  const known: Record<string, string> = {
    QA1000: "EXISTS with a subquery can replace the partial match of ARRAY_CONTAINS.",
    QA1001: "EXISTS with a subquery can replace DISTINCT over a JOIN.",
    QA1002: "CONTAINS looks at every value of the path; if a prefix is meant, STARTSWITH is cheaper.",
    QA1003: "Comparing without case reads more of the index; a computed property in lower case can be compared directly.",
    QA1004: "A computed property with REVERSE turns ENDSWITH into STARTSWITH.",
    QA1005: "A computed property can replace the expression in GROUP BY.",
    QA1006: "A computed property can replace UPPER or LOWER in a comparison.",
    QA1007: "GetCurrentDateTimeStatic is computed once for the whole query.",
    QA1008: "GetCurrentTicksStatic is computed once for the whole query.",
    QA1009: "GetCurrentTimestampStatic is computed once for the whole query.",
  };
  return known[id] ?? "";
}
