import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import {
  ApplyRecipeDocument,
  type ApplyRecipeMutation,
  OwnRecipeDocument,
  RecipeParametersDocument,
  RecipePartsDocument,
  type RecipePartsQuery,
  RecipesDocument,
  type RecipesQuery,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { CheckedButton } from '../ground/checked-button';
import { Dialog } from '../ground/dialog';
import { Field, type FieldSpec, type Values } from '../ground/form';
import { usePlace } from '../ground/place';
import { faultOf, Loading, Problem } from '../ground/problem';
import { wordOf } from '../ground/words';
import { t } from '../texts';

type Applied = ApplyRecipeMutation['applyRecipe'];
type Missing = Applied['missing'][number];

/** What is used of a parameter of a recipe. */
interface Parameter {
  name: string;
  type: string;
  description?: string | null;
  default?: string | number | boolean | null;
  enum?: readonly string[] | null;
}

interface Recipe {
  id: string;
  name: string;
  description: string;
  category: string;
  isOwn: boolean;
}

const recipesIn = ({ recipes, organizationRecipes }: RecipesQuery): Recipe[] => [
  ...organizationRecipes.nodes.map((one) => ({ ...one, isOwn: true })),
  ...recipes.recipes.map((one) => ({ ...one, isOwn: false })),
];

/** What the one who applies a recipe may choose. Of the recipes, only the chosen one is read whole. */
function useParameters({ id, isOwn }: Recipe) {
  const { orgId } = usePlace();
  const ours = useAnswer(OwnRecipeDocument, { orgId, id }, { isWaiting: !isOwn });
  const theirs = useAnswer(RecipeParametersDocument, { orgId, id }, { isWaiting: isOwn });
  const given = isOwn ? ours.data?.organizationRecipe.content.recipe.parameters : theirs.data?.recipe.parameters;
  const isRead = (isOwn ? ours : theirs).data !== undefined;
  return { parameters: isRead ? ((given ?? []) as readonly Parameter[]) : null, error: ours.error ?? theirs.error };
}

/** A recipe is chosen, tried, and applied with what takes the place of what the workspace lacks. */
export function Recipes({ onClose }: { onClose: () => void }) {
  const { orgId } = usePlace();
  const { data, error } = useAnswer(RecipesDocument, { orgId });
  const [chosen, setChosen] = useState<Recipe | null>(null);
  if (chosen) return <Chosen recipe={chosen} onClose={onClose} />;
  const recipes = data && recipesIn(data);
  return (
    <Dialog title={t.recipes.choose} onClose={onClose} isWide>
      <Problem error={error} />
      {!recipes && !error && <Loading />}
      {recipes?.length === 0 && <p className="quiet">{t.recipes.none}</p>}
      <ul className="plain choices">
        {recipes?.map((recipe) => (
          <li key={recipe.id}>
            <button type="button" className="choice" onClick={() => setChosen(recipe)}>
              <strong>{recipe.name}</strong>{' '}
              <span className="tag">{wordOf(t.recipes.categories, recipe.category)}</span>{' '}
              {recipe.isOwn && <span className="tag ok">{t.recipes.own}</span>}
              <small className="quiet">{recipe.description}</small>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function Chosen({ recipe, onClose }: { recipe: Recipe; onClose: () => void }) {
  const { parameters, error } = useParameters(recipe);
  if (parameters) return <Apply recipe={recipe} parameters={parameters} onClose={onClose} />;
  return (
    <Dialog title={t.recipes.applyOne(recipe.name)} onClose={onClose} isWide>
      <Problem error={error} />
      {!error && <Loading />}
    </Dialog>
  );
}

/** Between the names of fields and those of parameters, so that they never are the same. */
const PARAMETER = 'parameter.';

function specOf({ name, type, description, default: first, enum: choices }: Parameter): FieldSpec {
  const kinds: Readonly<Record<string, FieldSpec['kind']>> = { boolean: 'check', integer: 'number', number: 'number' };
  return {
    name: `${PARAMETER}${name}`,
    label: name,
    kind: choices?.length ? 'choice' : (kinds[type] ?? 'text'),
    hint: description ?? undefined,
    isRequired: first === undefined && type !== 'boolean',
    value: first === undefined || first === null ? '' : String(first),
    ...(choices?.length && { choices: choices.map((value) => ({ value, label: value })) }),
  };
}

function parameterValue(type: string, text: string): unknown {
  if (type === 'boolean') return text === 'true';
  return type === 'integer' || type === 'number' ? Number(text) : text;
}

const parametersOf = (parameters: readonly Parameter[], values: Values): Record<string, unknown> =>
  Object.fromEntries(
    parameters.flatMap(({ name, type }): [string, unknown][] => {
      const text = values[`${PARAMETER}${name}`] ?? '';
      return text === '' && type !== 'boolean' ? [] : [[name, parameterValue(type, text)]];
    }),
  );

/** Which of the mappings of a recipe has what takes the place of a missing part. */
const mappings = { tool: 'tools', tool_instance: 'tools', model: 'models', secret: 'secrets' } as const;
type Mapped = keyof typeof mappings;
const isMapped = (kind: Missing['kind']): kind is Mapped => Object.hasOwn(mappings, kind);
const keyOf = ({ kind, name }: Missing) => `${kind} ${name ?? ''}`;

function mappingsOf(missing: readonly Missing[], instead: Values) {
  const all: Record<(typeof mappings)[Mapped], Record<string, string>> = { tools: {}, models: {}, secrets: {} };
  for (const part of missing) {
    const value = instead[keyOf(part)];
    if (value && part.name && isMapped(part.kind)) all[mappings[part.kind]][part.name] = value;
  }
  return all;
}

function Apply({
  recipe,
  parameters,
  onClose,
}: {
  recipe: Recipe;
  parameters: readonly Parameter[];
  onClose: () => void;
}) {
  const { orgId, workspaceId } = usePlace();
  const apply = useChange(ApplyRecipeDocument);
  const fields: FieldSpec[] = [{ name: 'name', label: t.name, hint: t.recipes.nameHint }, ...parameters.map(specOf)];
  const [values, setValues] = useState<Values>(() =>
    Object.fromEntries(fields.map(({ name, value }) => [name, value ?? ''])),
  );
  const [instead, setInstead] = useState<Values>({});
  /** All that was missing in a preview: what has a substitute is missing no longer, but can have another. */
  const [missing, setMissing] = useState<readonly Missing[]>([]);
  const [preview, setPreview] = useState<Applied | null>(null);
  const [made, setMade] = useState<Applied | null>(null);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const run = async (dryRun: boolean) => {
    setBusy(true);
    const input = {
      recipeId: recipe.id,
      dryRun,
      parameters: parametersOf(parameters, values),
      ...(values.name && { name: values.name }),
      ...mappingsOf(missing, instead),
    };
    const { data, error } = await apply({ orgId, workspaceId, input });
    setBusy(false);
    const fault = error && faultOf(error);
    setProblem(fault ? [fault.message, ...Object.values(fault.fields)].join(' ') : '');
    if (!data) return;
    if (!dryRun) return setMade(data.applyRecipe);
    setPreview(data.applyRecipe);
    const known = new Set(missing.map(keyOf));
    setMissing([...missing, ...data.applyRecipe.missing.filter((part) => !known.has(keyOf(part)))]);
  };
  if (made) return <Made applied={made} onClose={onClose} />;
  return (
    <Dialog title={t.recipes.applyOne(recipe.name)} onClose={onClose} isWide>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) void run(preview === null);
        }}
      >
        <p className="quiet">{recipe.description}</p>
        {fields.map((spec) => (
          <Field
            key={spec.name}
            spec={spec}
            value={values[spec.name] ?? ''}
            fault={undefined}
            onChange={(value) => setValues({ ...values, [spec.name]: value })}
          />
        ))}
        {preview && (
          <Preview
            applied={preview}
            missing={missing}
            instead={instead}
            onInstead={(key, value) => setInstead({ ...instead, [key]: value })}
          />
        )}
        <Problem message={problem} />
        <footer>
          <CheckedButton disabled={isBusy} onClick={() => void run(true)}>
            {t.recipes.preview}
          </CheckedButton>
          <button type="submit" className="primary" disabled={isBusy || !preview}>
            {t.recipes.apply}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Preview({
  applied,
  missing,
  instead,
  onInstead,
}: {
  applied: Applied;
  missing: readonly Missing[];
  instead: Values;
  onInstead: (key: string, value: string) => void;
}) {
  const { orgId, workspaceId } = usePlace();
  const { data } = useAnswer(RecipePartsDocument, { orgId, workspaceId });
  return (
    <section aria-live="polite">
      <h3>{t.recipes.willMake}</h3>
      <p>{applied.message}</p>
      {missing.length === 0 ? (
        <p>{t.recipes.lacksNothing}</p>
      ) : (
        <>
          <h3>{t.recipes.lacks}</h3>
          <p className="quiet">{t.recipes.lacksHint}</p>
          <ul className="plain">
            {missing.map((part) => (
              <li key={keyOf(part)}>
                <PartName part={part} />
                {data && isMapped(part.kind) && part.name && (
                  <Substitute
                    label={t.recipes.insteadOf(part.name)}
                    choices={choicesOf(part.kind, data)}
                    value={instead[keyOf(part)] ?? ''}
                    onChange={(value) => onInstead(keyOf(part), value)}
                  />
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

const PartName = ({ part: { kind, name, usedBy } }: { part: Missing }) => (
  <p>
    <span className="tag warn">{t.recipes.kinds[kind]}</span> <strong>{name}</strong>{' '}
    {usedBy.length > 0 && (
      <span className="quiet">
        {t.recipes.usedBy}: {usedBy.join(', ')}
      </span>
    )}
  </p>
);

function choicesOf(kind: Mapped, { toolInstances, logicalModels, secrets }: RecipePartsQuery) {
  if (kind === 'model')
    return logicalModels.nodes.map(({ logicalModelId, name }) => ({ value: logicalModelId, label: name }));
  const { nodes } = kind === 'secret' ? (secrets ?? { nodes: [] }) : toolInstances;
  return nodes.map(({ id, name }) => ({ value: id, label: name }));
}

function Substitute({
  label,
  choices,
  value,
  onChange,
}: {
  label: string;
  choices: readonly { value: string; label: string }[];
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <label>
      {t.recipes.instead}{' '}
      <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{t.none}</option>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What was made, with what it still lacks. */
function Made({ applied: { appId, message, missing }, onClose }: { applied: Applied; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  return (
    <Dialog title={t.recipes.choose} onClose={onClose} isWide>
      <p role="status">{message}</p>
      {missing.length > 0 && (
        <>
          <h3>{t.recipes.lacks}</h3>
          <ul className="plain">
            {missing.map((part) => (
              <li key={keyOf(part)}>
                <PartName part={part} />
              </li>
            ))}
          </ul>
        </>
      )}
      {appId && (
        <footer>
          <Link to="/o/$org/w/$ws/apps/$app" params={{ org: orgId, ws: workspaceId, app: appId }}>
            {t.recipes.open}
          </Link>
        </footer>
      )}
    </Dialog>
  );
}
