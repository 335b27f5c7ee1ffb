// A request charge, with what it is made of.

import type { ChargeLine } from "../wire/client.ts";

export const units = (value: number) => (Math.round(value * 100) / 100).toLocaleString("en");

export function ChargeTable(props: { total: number; lines: ChargeLine[] }) {
  return (
    <table class="plain">
      <caption>Request units, line by line</caption>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col" class="number">How many</th>
          <th scope="col" class="number">Each</th>
          <th scope="col" class="number">RU</th>
        </tr>
      </thead>
      <tbody>
        {props.lines.map((line, index) => (
          <tr key={index}>
            <th scope="row">{line.what}</th>
            <td class="number">{line.count.toLocaleString("en")}</td>
            <td class="number">{line.each}</td>
            <td class="number">{line.units}</td>
          </tr>
        ))}
        <tr class="total">
          <th scope="row">Total</th>
          <td />
          <td />
          <td class="number">{units(props.total)}</td>
        </tr>
      </tbody>
    </table>
  );
}

/** Adds up the lines of several pages. */
export function sumLines(pages: ChargeLine[][]): ChargeLine[] {
  const sums = new Map<string, ChargeLine>();
  for (const line of pages.flat()) {
    const name = `${line.what} ${line.each}`;
    const sum = sums.get(name);
    if (sum === undefined) sums.set(name, { ...line });
    else {
      sum.count += line.count;
      sum.units = Math.round((sum.units + line.units) * 1e6) / 1e6;
    }
  }
  return [...sums.values()];
}
