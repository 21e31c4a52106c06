import { type ReactNode, useId, useState } from 'react';
import type { CombinedError } from 'urql';
import { t } from '../texts';
import { Dialog } from './dialog';
import { type Fault, faultOf, type Issue, nameIn, Problem } from './problem';

export interface FieldSpec {
  name: string;
  /** Where in the input its value goes, such as `config.url`, if that is not its name. */
  at?: string;
  label: string;
  kind?: 'text' | 'lines' | 'password' | 'number' | 'date' | 'choice' | 'choices' | 'check' | 'json';
  isRequired?: boolean;
  /** Whether browsers may neither keep nor check it: some send what they check elsewhere. */
  isSecret?: boolean;
  choices?: readonly { value: string; label: string }[];
  hint?: string | undefined;
  placeholder?: string | undefined;
  /** Of a number: `any` for one with a fraction. */
  step?: 'any';
  value?: string;
}

export type Values = Readonly<Record<string, string>>;

/** The lines of a text that are not empty: what is chosen in a field of several choices, too. */
export const linesOf = (text = ''): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

/** How many choices are seen at once without a field to find one. */
const FEW = 12;

/** A field of which several choices may be taken. Its value has a line for each. */
export function Choices({
  spec: { label, choices = [], hint },
  value,
  fault,
  onChange,
}: {
  spec: FieldSpec;
  value: string;
  fault: string | undefined;
  onChange: (value: string) => void;
}) {
  const id = useId();
  const [words, setWords] = useState('');
  const chosen = linesOf(value);
  const isShown = (choice: { value: string; label: string }) =>
    chosen.includes(choice.value) || choice.label.toLowerCase().includes(words.toLowerCase());
  const toggle = (one: string) =>
    onChange((chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one]).join('\n'));
  return (
    <fieldset className="field" aria-describedby={fault || hint ? id : undefined}>
      <legend>{label}</legend>
      {choices.length > FEW && (
        <input
          type="search"
          aria-label={t.findIn(label)}
          placeholder={t.findIn(label)}
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
      )}
      <div className="many">
        {choices.filter(isShown).map((choice) => (
          <label key={choice.value}>
            <input type="checkbox" checked={chosen.includes(choice.value)} onChange={() => toggle(choice.value)} />{' '}
            {choice.label}
          </label>
        ))}
      </div>
      <p id={id} className={fault ? 'fault' : 'quiet'}>
        {fault ?? hint}
      </p>
    </fieldset>
  );
}

/** One field. A fault of the service is said at the field that it is about. */
export function Field({
  spec,
  value,
  fault,
  onChange,
}: {
  spec: FieldSpec;
  value: string;
  fault: string | undefined;
  onChange: (value: string) => void;
}) {
  const id = useId();
  const { kind = 'text', isRequired = false, isSecret = false, choices = [], hint } = spec;
  const describedBy = [fault && `${id}-fault`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined;
  const common = {
    id,
    name: spec.name,
    required: isRequired,
    'aria-invalid': fault ? true : undefined,
    'aria-describedby': describedBy,
  };
  const types = { number: 'number', date: 'datetime-local', password: 'password' } as const;
  return (
    <div className={kind === 'check' ? 'field check' : 'field'}>
      <label htmlFor={id}>{spec.label}</label>
      {kind === 'lines' || kind === 'json' ? (
        <textarea
          {...common}
          {...(isSecret && { spellCheck: false, autoComplete: 'off' })}
          rows={kind === 'json' ? 5 : 3}
          value={value}
          onChange={(e) => onChange(e.target.value)}
        />
      ) : kind === 'choice' ? (
        <select {...common} value={value} onChange={(e) => onChange(e.target.value)}>
          {!isRequired && <option value="">{t.none}</option>}
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      ) : kind === 'check' ? (
        <input
          {...common}
          required={false}
          type="checkbox"
          checked={value === 'true'}
          onChange={(e) => onChange(String(e.target.checked))}
        />
      ) : (
        <input
          {...common}
          type={kind === 'text' || kind === 'choices' ? 'text' : types[kind]}
          step={spec.step}
          placeholder={spec.placeholder}
          autoComplete={kind === 'password' ? 'new-password' : 'off'}
          value={value}
          onChange={(e) => onChange(e.target.value)}
        />
      )}
      {hint && (
        <p id={`${id}-hint`} className="quiet">
          {hint}
        </p>
      )}
      {fault && (
        <p id={`${id}-fault`} className="fault">
          {fault}
        </p>
      )}
    </div>
  );
}

/** Where a refusal is below a field: empty at the field itself, `null` elsewhere. */
function placeBelow({ at, name }: FieldSpec, { path }: Issue): string | null {
  if (at === undefined) return nameIn(path) === name ? '' : null;
  const place = path.filter((part, index) => index > 0 || part !== 'input').join('.');
  if (place === at) return '';
  return place.startsWith(`${at}.`) ? place.slice(at.length + 1) : null;
}

/** What is refused at a field. What is below it is named, for nothing else tells it apart. */
function faultAt(spec: FieldSpec, { fields, issues }: Fault): string | undefined {
  if (spec.at === undefined) return fields[spec.name];
  const found = issues.flatMap((issue) => {
    const below = placeBelow(spec, issue);
    return below === null ? [] : [below ? `${below}: ${issue.msg}` : issue.msg];
  });
  return found.length > 0 ? found.join(' ') : undefined;
}

/** Whether all that is refused is said at a field. */
const isPlaced = ({ issues }: Fault, specs: readonly FieldSpec[]) =>
  issues.length > 0 && issues.every((issue) => specs.some((spec) => placeBelow(spec, issue) !== null));

/** A form in a dialog, drawn from the list of its fields. */
export function FormDialog({
  title,
  fields,
  action,
  onSave,
  onClose,
  children,
  conflictOf,
}: {
  title: string;
  fields: readonly FieldSpec[];
  action: string;
  /** @returns the error of the service, if it refuses */
  onSave: (values: Values) => Promise<{ error?: CombinedError | undefined }>;
  onClose: () => void;
  children?: ReactNode;
  /** What others have saved meanwhile, if the form was opened before that. */
  conflictOf?: (() => Promise<Values | null>) | undefined;
}) {
  const [values, setValues] = useState<Values>(() =>
    Object.fromEntries(
      fields.map(({ name, kind, value, isRequired, choices }) => {
        const first = kind === 'choice' && isRequired ? (choices?.[0]?.value ?? '') : '';
        return [name, value ?? first];
      }),
    ),
  );
  const [error, setError] = useState<CombinedError>();
  const [theirs, setTheirs] = useState<Values | null>(null);
  const [isBusy, setBusy] = useState(false);
  const fault = error && faultOf(error);
  const isConflict = fault?.code === 'PRECONDITION_FAILED';
  const save = async () => {
    setBusy(true);
    setTheirs(null);
    const { error: refusal } = await onSave(values);
    setBusy(false);
    if (!refusal) return onClose();
    setError(refusal);
    if (conflictOf && faultOf(refusal).code === 'PRECONDITION_FAILED') setTheirs(await conflictOf());
  };
  const changed = theirs ? fields.filter(({ name }) => (theirs[name] ?? '') !== (values[name] ?? '')) : [];
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) void save();
        }}
      >
        {children}
        {fields.map((spec) => {
          const Drawn = spec.kind === 'choices' ? Choices : Field;
          return (
            <Drawn
              key={spec.name}
              spec={spec}
              value={values[spec.name] ?? ''}
              fault={fault && faultAt(spec, fault)}
              onChange={(value) => setValues({ ...values, [spec.name]: value })}
            />
          );
        })}
        {!(fault && isPlaced(fault, fields)) && <Problem error={error} />}
        {isConflict && theirs && (
          <table className="conflict">
            <caption>{t.conflict.title}</caption>
            <thead>
              <tr>
                <th scope="col">{t.conflict.field}</th>
                <th scope="col">{t.conflict.yours}</th>
                <th scope="col">{t.conflict.theirs}</th>
              </tr>
            </thead>
            <tbody>
              {changed.map(({ name, label }) => (
                <tr key={name}>
                  <th scope="row">{label}</th>
                  <td>{values[name]}</td>
                  <td>{theirs[name]}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <footer>
          <button type="button" onClick={onClose}>
            {t.cancel}
          </button>
          {isConflict && theirs && (
            <button
              type="button"
              onClick={() => {
                setValues({ ...values, ...theirs });
                setError(undefined);
              }}
            >
              {t.conflict.take}
            </button>
          )}
          <button type="submit" className="primary" disabled={isBusy}>
            {isConflict && theirs ? t.conflict.keep : action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** A text of JSON, or what is wrong with it. */
export function jsonOf(text: string | undefined): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text || '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
