import { useState } from 'react';
import {
  CreateEntityDocument,
  DeleteEntityDocument,
  EntityDetailDocument,
  type EntityDetailQuery,
  RelateEntitiesDocument,
  UnrelateEntitiesDocument,
  UpdateEntityDocument,
  UpdateEntityRelationDocument,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { ConfirmDialog } from '../ground/dialog';
import { type FieldSpec, FormDialog, linesOf, type Values } from '../ground/form';
import { usePlace } from '../ground/place';
import { count, Time } from '../ground/time';
import { t } from '../texts';
import type { GraphNode } from './graph-layout';

export type Detail = EntityDetailQuery['entity'];
type Relation = Detail['relations']['nodes'][number];

/** Where a graph is. */
export interface GraphPlace {
  orgId: string;
  workspaceId: string;
  appId: string;
  namespaceId: string;
}

type Step = { kind: 'edit' | 'delete' | 'relate' } | { kind: 'relation' | 'unrelate'; relation: Relation };

/** The chosen entity: what is known of it, its relations to walk along, and what can be changed. */
export function EntityPanel({
  place,
  entity,
  nodes,
  onChoose,
}: {
  place: GraphPlace;
  entity: Detail;
  nodes: readonly GraphNode[];
  onChoose: (id: string | null) => void;
}) {
  const { may } = usePlace();
  const [step, setStep] = useState<Step | null>(null);
  const close = () => setStep(null);
  const { name, entityType, description, aliases, tags, mentionCount, importance, updatedAt, relations } = entity;
  return (
    <section aria-labelledby="entity" className="card">
      <header className="toolbar">
        <h2 id="entity" className="grow">
          {name} <span className="tag">{entityType}</span>
        </h2>
        <button type="button" className="plain icon" aria-label={t.graph.leave} onClick={() => onChoose(null)}>
          ×
        </button>
      </header>
      {description && <p>{description}</p>}
      {aliases.length > 0 && (
        <p className="quiet">
          {t.graph.aliases}: {aliases.join(', ')}
        </p>
      )}
      {tags.length > 0 && (
        <p>
          {tags.map((tag) => (
            <span key={tag} className="tag">
              {tag}
            </span>
          ))}
        </p>
      )}
      <p className="quiet">
        {t.graph.mentions(count(mentionCount))} · {t.graph.importance} {count(importance)} · {t.changed}{' '}
        <Time at={updatedAt} />
      </p>
      <p className="actions">
        {may('entity:update') && (
          <>
            <button type="button" className="small" onClick={() => setStep({ kind: 'edit' })}>
              {t.graph.editOne(name)}
            </button>
            <button type="button" className="small" onClick={() => setStep({ kind: 'relate' })}>
              {t.graph.relate}
            </button>
          </>
        )}
        {may('entity:delete') && (
          <button type="button" className="small danger" onClick={() => setStep({ kind: 'delete' })}>
            {t.graph.deleteOne(name)}
          </button>
        )}
      </p>
      <h3>{t.graph.relations}</h3>
      {relations.nodes.length === 0 && <p className="quiet">{t.graph.noRelations}</p>}
      <ul className="plain relations">
        {relations.nodes.map((relation) => (
          <RelationRow key={relation.relationId} relation={relation} onChoose={onChoose} onStep={setStep} />
        ))}
      </ul>
      {relations.pageInfo.hasNextPage && <p className="quiet">{t.first(relations.nodes.length)}</p>}
      {step?.kind === 'edit' && <EditEntity place={place} entity={entity} onClose={close} />}
      {step?.kind === 'relate' && <Relate place={place} entity={entity} nodes={nodes} onClose={close} />}
      {step?.kind === 'delete' && (
        <DeleteEntity place={place} entity={entity} onClose={close} onGone={() => onChoose(null)} />
      )}
      {step?.kind === 'relation' && <EditRelation place={place} relation={step.relation} onClose={close} />}
      {step?.kind === 'unrelate' && <Unrelate place={place} relation={step.relation} onClose={close} />}
    </section>
  );
}

function RelationRow({
  relation,
  onChoose,
  onStep,
}: {
  relation: Relation;
  onChoose: (id: string) => void;
  onStep: (step: Step) => void;
}) {
  const { may } = usePlace();
  const { relationType, direction, target } = relation;
  const words = t.graph.relationTo(relationType, target.name);
  return (
    <li>
      <span aria-hidden="true">{direction === 'outgoing' ? '→' : '←'}</span>
      <span className="unseen">{t.graph.directions[direction]}</span> {relationType}{' '}
      <button type="button" className="plain link" onClick={() => onChoose(target.id)}>
        {target.name}
      </button>{' '}
      {may('entity:update') && (
        <span className="actions">
          <button
            type="button"
            className="small plain"
            aria-label={t.graph.editRelation(words)}
            onClick={() => onStep({ kind: 'relation', relation })}
          >
            {t.edit}
          </button>
          <button
            type="button"
            className="small plain"
            aria-label={t.graph.removeRelation(words)}
            onClick={() => onStep({ kind: 'unrelate', relation })}
          >
            {t.graph.remove}
          </button>
        </span>
      )}
    </li>
  );
}

const fieldsOf = (entity?: Detail): FieldSpec[] => [
  { name: 'name', label: t.name, isRequired: true, value: entity?.name ?? '' },
  { name: 'entityType', label: t.graph.type, hint: t.graph.typeHint, value: entity?.entityType ?? '' },
  { name: 'description', label: t.description, kind: 'lines', value: entity?.description ?? '' },
  {
    name: 'importance',
    label: t.graph.importance,
    kind: 'number',
    step: 'any',
    hint: t.graph.importanceHint,
    value: String(entity?.importance ?? ''),
  },
  {
    name: 'aliases',
    label: t.graph.aliases,
    kind: 'lines',
    hint: t.graph.lineHint,
    value: entity?.aliases.join('\n') ?? '',
  },
  { name: 'tags', label: t.graph.tags, kind: 'lines', hint: t.graph.lineHint, value: entity?.tags.join('\n') ?? '' },
];

const inputOf = ({ name = '', entityType, description, importance, aliases, tags }: Values) => ({
  name,
  description: description || null,
  aliases: linesOf(aliases),
  tags: linesOf(tags),
  ...(entityType && { entityType }),
  ...(importance && { importance: Number(importance) }),
});

export function NewEntity({
  place,
  onClose,
  onMade,
}: {
  place: GraphPlace;
  onClose: () => void;
  onMade: (id: string) => void;
}) {
  const create = useChange(CreateEntityDocument);
  return (
    <FormDialog
      title={t.graph.create}
      action={t.create}
      onClose={onClose}
      fields={fieldsOf()}
      onSave={async (values) => {
        const answer = await create({ ...place, input: inputOf(values) });
        if (answer.data) onMade(answer.data.createEntity.id);
        return answer;
      }}
    />
  );
}

function EditEntity({ place, entity, onClose }: { place: GraphPlace; entity: Detail; onClose: () => void }) {
  const update = useChange(UpdateEntityDocument);
  const [version, setVersion] = useState(entity.resourceVersion);
  const theirs = async (): Promise<Values | null> => {
    const { data } = await askPastCache(EntityDetailDocument, { ...place, id: entity.id });
    if (!data) return null;
    setVersion(data.entity.resourceVersion);
    return Object.fromEntries(fieldsOf(data.entity).map(({ name, value = '' }) => [name, value]));
  };
  return (
    <FormDialog
      title={t.graph.editOne(entity.name)}
      action={t.save}
      onClose={onClose}
      fields={fieldsOf(entity)}
      conflictOf={theirs}
      onSave={(values) => update({ ...place, id: entity.id, input: inputOf(values), expectedVersion: version })}
    />
  );
}

function DeleteEntity({
  place,
  entity: { id, name, relations },
  onClose,
  onGone,
}: {
  place: GraphPlace;
  entity: Detail;
  onClose: () => void;
  onGone: () => void;
}) {
  const remove = useChange(DeleteEntityDocument);
  return (
    <ConfirmDialog
      title={t.graph.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={async () => {
        const answer = await remove({ ...place, id });
        if (!answer.error) onGone();
        return answer;
      }}
    >
      <p>{t.graph.deleteHint(relations.nodes.length)}</p>
    </ConfirmDialog>
  );
}

const weightField = (weight: number | null): FieldSpec => ({
  name: 'weight',
  label: t.graph.weight,
  kind: 'number',
  step: 'any',
  hint: t.graph.weightHint,
  value: weight === null ? '' : String(weight),
});

function Relate({
  place,
  entity,
  nodes,
  onClose,
}: {
  place: GraphPlace;
  entity: Detail;
  nodes: readonly GraphNode[];
  onClose: () => void;
}) {
  const relate = useChange(RelateEntitiesDocument);
  const others = nodes.filter(({ id }) => id !== entity.id);
  others.sort((one, other) => one.name.localeCompare(other.name));
  return (
    <FormDialog
      title={t.graph.relateOne(entity.name)}
      action={t.graph.relate}
      onClose={onClose}
      fields={[
        { name: 'relationType', label: t.graph.relationType, hint: t.graph.relationTypeHint, isRequired: true },
        {
          name: 'targetEntityId',
          label: t.graph.target,
          kind: 'choice',
          isRequired: true,
          choices: others.map(({ id, name, entityType }) => ({ value: id, label: `${name} (${entityType})` })),
        },
        weightField(null),
      ]}
      onSave={({ relationType = '', targetEntityId = '', weight }) => {
        const given = { sourceEntityId: entity.id, relationType, targetEntityId };
        return relate({ ...place, input: { ...given, ...(weight && { weight: Number(weight) }) } });
      }}
    />
  );
}

function EditRelation({ place, relation, onClose }: { place: GraphPlace; relation: Relation; onClose: () => void }) {
  const update = useChange(UpdateEntityRelationDocument);
  const { relationId, relationType, weight, resourceVersion, target } = relation;
  return (
    <FormDialog
      title={t.graph.editRelation(t.graph.relationTo(relationType, target.name))}
      action={t.save}
      onClose={onClose}
      fields={[
        { name: 'relationType', label: t.graph.relationType, isRequired: true, value: relationType },
        weightField(weight),
      ]}
      onSave={(values) => {
        const input = {
          relationType: values.relationType ?? '',
          ...(values.weight && { weight: Number(values.weight) }),
        };
        return update({ ...place, relationId, input, expectedVersion: resourceVersion });
      }}
    />
  );
}

function Unrelate({ place, relation, onClose }: { place: GraphPlace; relation: Relation; onClose: () => void }) {
  const remove = useChange(UnrelateEntitiesDocument);
  const { relationId, relationType, resourceVersion, target } = relation;
  return (
    <FormDialog
      title={t.graph.removeRelation(t.graph.relationTo(relationType, target.name))}
      action={t.graph.remove}
      onClose={onClose}
      fields={[]}
      onSave={() => remove({ ...place, relationId, expectedVersion: resourceVersion })}
    >
      <p>{t.graph.removeHint}</p>
    </FormDialog>
  );
}
