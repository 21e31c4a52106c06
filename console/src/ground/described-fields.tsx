import { type ReactNode, useId, useState } from 'react';
import { t } from '../texts';
import { type Described, faultOfPart, faultsBelow, isObject, type Part, type PlacedFault } from './described';
import { Choices, Field, type FieldSpec, linesOf } from './form';

interface Drawn {
  part: Part;
  value: unknown;
  faults: readonly PlacedFault[];
  onChange: (value: unknown) => void;
}

/** The fields of what is described, with what the service refuses at its place. A value that is not given is absent. */
export function DescribedFields({
  parts,
  values,
  faults,
  onChange,
}: {
  parts: readonly Part[];
  values: Described;
  faults: readonly PlacedFault[];
  onChange: (values: Described) => void;
}) {
  return parts.map((part) => (
    <DescribedField
      key={part.name}
      part={part}
      value={values[part.name]}
      faults={faultsBelow(faults, part.name)}
      onChange={(value) => onChange(withValue(values, part.name, value))}
    />
  ));
}

const withValue = (values: Described, name: string, value: unknown): Described =>
  Object.fromEntries([
    ...Object.entries(values).filter(([key]) => key !== name),
    ...(value === undefined ? [] : [[name, value] as const]),
  ]);

function DescribedField(drawn: Drawn) {
  if (drawn.part.kind === 'object') return <ObjectField {...drawn} />;
  if (drawn.part.kind === 'list') return <ListField {...drawn} />;
  if (drawn.part.kind === 'json') return <JsonField {...drawn} />;
  return <PlainField {...drawn} />;
}

const kinds = {
  text: 'text',
  lines: 'lines',
  secret: 'password',
  number: 'number',
  boolean: 'check',
  choice: 'choice',
  choices: 'choices',
} as const satisfies Partial<Record<Part['kind'], FieldSpec['kind']>>;

const specOf = ({ name, label, kind, isRequired, isInteger, hint, placeholder, choices }: Part): FieldSpec => ({
  name,
  label,
  kind: kind in kinds ? kinds[kind as keyof typeof kinds] : 'json',
  isRequired,
  hint,
  placeholder,
  ...(kind === 'number' && !isInteger && { step: 'any' as const }),
  choices: choices.map((choice) => ({ value: String(choice.value), label: choice.label })),
});

/** A value as the text of its field. */
function textOf({ kind }: Part, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (kind === 'choices') return Array.isArray(value) ? value.map(String).join('\n') : '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The value of the text of a field; what is no value of its type is left to the service to refuse. */
function valueIn({ kind, choices }: Part, text: string): unknown {
  const chosen = (one: string) => choices.find(({ value }) => String(value) === one)?.value ?? one;
  if (kind === 'boolean') return text === 'true';
  if (kind === 'choices') return linesOf(text).map(chosen);
  if (text === '') return undefined;
  if (kind === 'number') return Number(text);
  return kind === 'choice' ? chosen(text) : text;
}

function PlainField({ part, value, faults, onChange }: Drawn) {
  const Shown = part.kind === 'choices' ? Choices : Field;
  return (
    <Shown
      spec={specOf(part)}
      value={textOf(part, value)}
      fault={faultOfPart(part, faults, value)}
      onChange={(text) => onChange(valueIn(part, text))}
    />
  );
}

function parsed(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** A structure that nothing describes, as a text. */
function JsonField({ part, value, faults, onChange }: Drawn) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const change = (next: string) => {
    setText(next);
    onChange(parsed(next));
  };
  const spec = { ...specOf(part), hint: [part.hint, t.described.json].filter(Boolean).join(' ') };
  return <Field spec={spec} value={text} fault={faultOfPart(part, faults, value)} onChange={change} />;
}

function Group({ part, fault, children }: { part: Part; fault: string | undefined; children: ReactNode }) {
  const id = useId();
  const words = fault ?? part.hint;
  return (
    <fieldset className="field described" aria-describedby={words ? id : undefined}>
      <legend>{part.label}</legend>
      {words && (
        <p id={id} className={fault ? 'fault' : 'quiet'}>
          {words}
        </p>
      )}
      {children}
    </fieldset>
  );
}

function ObjectField({ part, value, faults, onChange }: Drawn) {
  return (
    <Group part={part} fault={faultOfPart(part, faults, value)}>
      <DescribedFields
        parts={part.parts}
        values={isObject(value) ? value : {}}
        faults={faults}
        onChange={(values) => onChange(Object.keys(values).length > 0 ? values : undefined)}
      />
    </Group>
  );
}

function ListField({ part, value, faults, onChange }: Drawn) {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const { item } = part;
  // a row keeps its field when another one before it goes
  const [keys, setKeys] = useState<readonly number[]>(() => items.map((_, at) => at));
  if (!item) return null;
  const give = (next: readonly unknown[]) => onChange(next.length > 0 ? next : undefined);
  const add = () => {
    setKeys([...keys, Math.max(-1, ...keys) + 1]);
    give([...items, item.kind === 'object' ? {} : (item.initial ?? '')]);
  };
  const remove = (at: number) => {
    setKeys(keys.filter((_, one) => one !== at));
    give(items.filter((_, one) => one !== at));
  };
  return (
    <Group part={part} fault={faultOfPart(part, faults, value)}>
      {items.map((one, at) => (
        <div className="item" key={keys[at] ?? at}>
          <DescribedField
            part={{ ...item, name: `${part.name}.${at}`, label: t.described.item(part.label, at + 1) }}
            value={one}
            faults={faultsBelow(faults, at)}
            onChange={(next) => give(items.map((other, place) => (place === at ? (next ?? '') : other)))}
          />
          <button
            type="button"
            className="small"
            aria-label={t.described.removeItem(part.label, at + 1)}
            onClick={() => remove(at)}
          >
            {t.described.remove}
          </button>
        </div>
      ))}
      <button type="button" className="small" aria-label={t.described.addTo(part.label)} onClick={add}>
        {t.described.add}
      </button>
    </Group>
  );
}
