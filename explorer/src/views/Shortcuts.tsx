import { Dialog } from "../parts/Dialog.tsx";

const KEYS: readonly [string, string][] = [
  ["?", "This list"],
  ["t", "Go to the tree; arrow keys move, Enter opens"],
  ["g", "Go to the tabs; arrow keys change them"],
  ["Ctrl Enter", "Run the query, or the procedure"],
  ["Ctrl S", "Save the item, the script, or the query"],
  ["Ctrl Space", "Complete in the editor"],
  ["Esc", "Close a dialog; stop a completion"],
  ["↑ ↓ Page Home End", "Move in a list of items or rows"],
  ["Space, Shift ↑ ↓, Ctrl A", "Choose items, to delete them together"],
];

export function Shortcuts(props: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={props.onClose}>
      <table class="plain">
        <tbody>
          {KEYS.map(([keys, meaning]) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="help">On a Mac, Cmd works like Ctrl. Tab leaves an editor; Ctrl ] and Ctrl [ indent.</p>
      <div class="actions">
        <button type="button" onClick={props.onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
