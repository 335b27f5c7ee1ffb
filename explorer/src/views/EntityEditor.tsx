// One entity as a form: its keys, and its properties with their types. It is saved only over the version that was shown.

import { useState } from "preact/hooks";
import { units } from "../parts/Charge.tsx";
import { Confirm } from "../parts/Dialog.tsx";
import { KINDS, entityError, keyError, valueError, type Entity, type Kind, type Property } from "../text/entity.ts";
import type { Column } from "./Entities.tsx";
import { useEntity, type EntityProps } from "./useEntity.ts";

export function EntityEditor(props: EntityProps & { columns: Column[]; onClose: () => void }) {
  const { row, columns } = props;
  const { entity, changed, change, save, remove, busy, problem, theirs, yieldTo, charge } = useEntity(props);
  const [deleting, setDeleting] = useState(false);
  const wrong = entityError(entity);
  return (
    <form
      class="entity"
      aria-label={row === null ? "New entity" : "Entity"}
      aria-busy={busy}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={(event) => {
        if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        void save();
      }}
    >
      <div class="row-of">
        <strong class="grow ellipsis">
          <bdi>{row === null ? "New entity" : `${entity.partitionKey} / ${entity.rowKey}`}</bdi>
        </strong>
        {changed && row !== null && <span class="draft">not saved</span>}
        <button type="submit" class="primary" disabled={!changed || wrong !== "" || busy || theirs !== null}>
          {row === null ? "Create" : "Save"}
        </button>
        {row !== null && (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete
          </button>
        )}
        <button type="button" class="quiet" onClick={props.onClose}>
          Close
        </button>
      </div>
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {theirs !== null && (
        <div data-conflict>
          <p class="problem" role="alert">
            Another client changed this entity since you opened it.
          </p>
          <div class="actions">
            <button type="button" onClick={yieldTo}>
              Take the server's version
            </button>
            <button type="button" class="primary" disabled={busy} onClick={() => void save(theirs.etag)}>
              Save mine over it
            </button>
          </div>
        </div>
      )}
      <div class="scroll grow">
        <Keys entity={entity} fixed={row !== null} onChange={change} />
        <Properties entity={entity} columns={columns} onChange={change} />
        {changed && wrong !== "" && (
          <p class="help" data-invalid>
            {wrong}
          </p>
        )}
        {entity.rest.length > 0 && (
          <p class="help">
            Not in the shape of entities, so the Table API does not show it; it stays as it is: {entity.rest.map(([name]) => name).join(", ")}
          </p>
        )}
      </div>
      {charge !== null && <p class="foot soft">{units(charge)} RU</p>}
      {deleting && (
        <Confirm title="Delete this entity?" action="Delete entity" onConfirm={remove} onClose={() => setDeleting(false)}>
          <p>
            <bdi>
              {entity.partitionKey} / {entity.rowKey}
            </bdi>{" "}
            will be gone.
          </p>
        </Confirm>
      )}
    </form>
  );
}

/** Both parts of the key; they are what an entity is known by, so they stay as they are once it is there. */
function Keys(props: { entity: Entity; fixed: boolean; onChange: (entity: Entity) => void }) {
  const { entity, fixed, onChange } = props;
  const field = (label: string, value: string, set: (text: string) => Entity) => (
    <label class="field">
      <span>{label}</span>
      <input
        name={label}
        value={value}
        readOnly={fixed}
        aria-invalid={keyError(value) !== ""}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onChange(set(event.currentTarget.value))}
      />
    </label>
  );
  return (
    <div class="entity-keys">
      {field("PartitionKey", entity.partitionKey, (partitionKey) => ({ ...entity, partitionKey }))}
      {field("RowKey", entity.rowKey, (rowKey) => ({ ...entity, rowKey }))}
    </div>
  );
}

function Properties(props: { entity: Entity; columns: Column[]; onChange: (entity: Entity) => void }) {
  const { entity, columns, onChange } = props;
  const put = (properties: Property[]) => onChange({ ...entity, properties });
  const unused = columns.filter(({ name }) => entity.properties.every((one) => one.name !== name));
  return (
    <>
      <ul class="plain-list properties" aria-label="Properties">
        {entity.properties.map((property, index) => (
          <PropertyRow
            key={index}
            property={property}
            columns={columns}
            onChange={(next) => put(entity.properties.map((one, at) => (at === index ? next : one)))}
            onRemove={() => put(entity.properties.filter((_, at) => at !== index))}
          />
        ))}
      </ul>
      <div class="row-of">
        <button type="button" onClick={() => put([...entity.properties, { name: "", kind: "String", text: "" }])}>
          Add a property
        </button>
        {unused.slice(0, 12).map(({ name, kind = "String" }) => (
          <button key={name} type="button" class="chip" aria-label={`Add ${name}`} onClick={() => put([...entity.properties, { name, kind, text: EMPTY[kind] ?? "" }])}>
            + {name}
          </button>
        ))}
      </div>
    </>
  );
}

/** Where a value has to be chosen rather than typed. */
const EMPTY: Partial<Record<Kind, string>> = { Boolean: "false" };

interface PropertyRowProps {
  property: Property;
  columns: Column[];
  onChange: (property: Property) => void;
  onRemove: () => void;
}

function PropertyRow(props: PropertyRowProps) {
  const { property, onChange } = props;
  const wrong = valueError(property.kind, property.text);
  const called = property.name === "" ? "the property" : property.name;
  const value = {
    "aria-label": `Value of ${called}`,
    "aria-invalid": wrong !== "",
    value: property.text,
  };
  return (
    <li class="property">
      <input
        aria-label="Name of the property"
        value={property.name}
        placeholder="name"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onChange({ ...property, name: event.currentTarget.value })}
      />
      <select
        aria-label={`Type of ${called}`}
        value={property.kind}
        onChange={(event) => {
          const kind = event.currentTarget.value as Kind;
          onChange({ ...property, kind, text: kind === "Boolean" && valueError(kind, property.text) !== "" ? "false" : property.text });
        }}
      >
        {KINDS.map((kind) => (
          <option key={kind}>{kind}</option>
        ))}
      </select>
      {property.kind === "Boolean" ? (
        <select {...value} onChange={(event) => onChange({ ...property, text: event.currentTarget.value })}>
          <option>false</option>
          <option>true</option>
        </select>
      ) : property.kind === "String" && /[\r\n]/.test(property.text) ? (
        <textarea {...value} rows={3} onInput={(event) => onChange({ ...property, text: event.currentTarget.value })} />
      ) : (
        <input {...value} autocomplete="off" spellcheck={false} onInput={(event) => onChange({ ...property, text: event.currentTarget.value })} />
      )}
      <button type="button" class="quiet" aria-label={`Remove ${called}`} onClick={props.onRemove}>
        ×
      </button>
      {wrong !== "" && <small class="error">{wrong}</small>}
    </li>
  );
}
