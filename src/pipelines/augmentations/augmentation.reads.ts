import { columnsOf, jsonOf, words } from '../../data/paging.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import {
  type Augmentation as AugmentationRow,
  Prisma,
  type AugmentationStage as StageRow,
  type AugmentationStep as StepRow,
} from '../../generated/prisma/client.ts';
import type { AppPlace } from '../../kernel/checked-place.ts';

/** A step as callers see it. */
export interface Step extends Omit<StepRow, 'stageId'> {
  orgId: string;
}

/** A stage as callers see it. */
export interface Stage extends Omit<StageRow, 'augmentationId'> {
  /** In their order. */
  steps: Step[];
}

/** An augmentation as callers see it. */
export interface Augmentation extends AugmentationRow {
  /** In their order. */
  stages: Stage[];
}

const step = jsonOf({
  ...columnsOf(words('id position key name stepType config logicalModelId toolInstanceId toolSlug action'), 'p'),
  orgId: 't.org_id',
});

const stage = jsonOf({
  ...columnsOf(words('id position name executionMode'), 's'),
  steps: `(select coalesce(json_agg(${step} order by p.position), '[]')
    from augmentation_steps p where p.stage_id = s.id)`,
});

/** The augmentations of an app, with their stages and steps in the same statement. */
export const augmentations: ReadsOptions<Augmentation, AppPlace, object> = {
  kind: 'augmentation',
  from: 'augmentations',
  columns: {
    ...columnsOf(Object.values(Prisma.AugmentationScalarFieldEnum)),
    stages: `(select coalesce(json_agg(${stage} order by s.position), '[]')
      from augmentation_stages s where s.augmentation_id = t.id)`,
  },
  below: ['orgId', 'workspaceId', 'appId'],
};
