// A request charge, with what it is made of.

import type { ChargeLine } from "../wire/client.ts";

/** Request units, always with two decimals, as the header of the charge has them. */
export const units = (value: number) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** Prices of single steps have more digits than that. */
const price = (value: number) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 6 });

export function ChargeTable(props: { total: number; lines: ChargeLine[] }) {
  return (
    <table class="plain">
      <caption>Request units, line by line</caption>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col" class="number">How many</th>
          <th scope="col" class="number">RU each</th>
          <th scope="col" class="number">RU</th>
        </tr>
      </thead>
      <tbody>
        {props.lines.map((line, index) => (
          <tr key={index}>
            <th scope="row">{line.what}</th>
            <td class="number">{line.count.toLocaleString("en")}</td>
            <td class="number">{price(line.each)}</td>
            <td class="number">{units(line.units)}</td>
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
