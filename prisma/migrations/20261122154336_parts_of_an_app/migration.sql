-- CreateTable
CREATE TABLE "augmentations" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "status" TEXT NOT NULL DEFAULT 'active',
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "augmentations_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "augmentation_stages" (
    "id" TEXT NOT NULL,
    "augmentation_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "execution_mode" TEXT NOT NULL DEFAULT 'sequential',

    CONSTRAINT "augmentation_stages_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "augmentation_steps" (
    "id" TEXT NOT NULL,
    "stage_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "step_type" TEXT NOT NULL,
    "config" JSONB NOT NULL DEFAULT '{}',
    "logical_model_id" TEXT,
    "tool_instance_id" TEXT,

    CONSTRAINT "augmentation_steps_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "endpoints" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "augmentation_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "path" TEXT NOT NULL,
    "method" TEXT NOT NULL DEFAULT 'POST',
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "endpoints_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "actions" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "augmentation_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "kind" TEXT NOT NULL DEFAULT 'manual',
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "trigger_event" TEXT,
    "cron" TEXT,
    "timezone" TEXT,
    "input" JSONB NOT NULL DEFAULT '{}',
    "next_fire_at" TIMESTAMPTZ(3),
    "last_fired_at" TIMESTAMPTZ(3),
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "actions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "place_counts" (
    "org_id" TEXT NOT NULL,
    "place_id" TEXT NOT NULL,
    "counter" TEXT NOT NULL,
    "slot" INTEGER NOT NULL,
    "n" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "place_counts_pkey" PRIMARY KEY ("org_id","place_id","counter","slot")
);

-- CreateIndex
CREATE INDEX "augmentations_org_id_workspace_id_app_id_id_idx" ON "augmentations"("org_id", "workspace_id", "app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "augmentations_app_id_idx" ON "augmentations"("app_id");

-- CreateIndex
CREATE UNIQUE INDEX "augmentations_id_app_id_key" ON "augmentations"("id", "app_id");

-- CreateIndex
CREATE UNIQUE INDEX "augmentation_stages_augmentation_id_position_key" ON "augmentation_stages"("augmentation_id", "position");

-- CreateIndex
CREATE UNIQUE INDEX "augmentation_steps_stage_id_position_key" ON "augmentation_steps"("stage_id", "position");

-- CreateIndex
CREATE INDEX "endpoints_org_id_workspace_id_app_id_id_idx" ON "endpoints"("org_id", "workspace_id", "app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "endpoints_augmentation_id_idx" ON "endpoints"("augmentation_id");

-- CreateIndex
CREATE UNIQUE INDEX "endpoints_app_id_path_key" ON "endpoints"("app_id", "path");

-- CreateIndex
CREATE INDEX "actions_org_id_workspace_id_app_id_id_idx" ON "actions"("org_id", "workspace_id", "app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "actions_app_id_idx" ON "actions"("app_id");

-- CreateIndex
CREATE INDEX "actions_augmentation_id_idx" ON "actions"("augmentation_id");

-- AddForeignKey
ALTER TABLE "augmentations" ADD CONSTRAINT "augmentations_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "augmentation_stages" ADD CONSTRAINT "augmentation_stages_augmentation_id_fkey" FOREIGN KEY ("augmentation_id") REFERENCES "augmentations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "augmentation_steps" ADD CONSTRAINT "augmentation_steps_stage_id_fkey" FOREIGN KEY ("stage_id") REFERENCES "augmentation_stages"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "endpoints" ADD CONSTRAINT "endpoints_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "endpoints" ADD CONSTRAINT "endpoints_augmentation_id_app_id_fkey" FOREIGN KEY ("augmentation_id", "app_id") REFERENCES "augmentations"("id", "app_id") ON DELETE NO ACTION ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "actions" ADD CONSTRAINT "actions_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "actions" ADD CONSTRAINT "actions_augmentation_id_app_id_fkey" FOREIGN KEY ("augmentation_id", "app_id") REFERENCES "augmentations"("id", "app_id") ON DELETE NO ACTION ON UPDATE CASCADE;

ALTER TABLE augmentations ADD CONSTRAINT augmentations_status CHECK (status IN ('draft', 'active', 'archived'));
ALTER TABLE augmentation_stages ADD CONSTRAINT augmentation_stages_execution_mode
  CHECK (execution_mode IN ('sequential', 'parallel'));
ALTER TABLE actions ADD CONSTRAINT actions_kind CHECK (kind IN ('manual', 'trigger', 'scheduled')
  AND (kind = 'trigger') = (trigger_event IS NOT NULL)
  AND (kind = 'scheduled') = (cron IS NOT NULL AND timezone IS NOT NULL)
  AND (kind = 'scheduled') = (cron IS NOT NULL OR timezone IS NOT NULL)
  AND (next_fire_at IS NULL OR kind = 'scheduled' AND enabled));

CALL keep_resource_version('augmentations');
CALL keep_resource_version('endpoints');
-- When it fires moves by itself.
CALL keep_resource_version('actions', '{next_fire_at,last_fired_at}');

-- Keeps how many rows of a table each workspace and each app has, by counter: its name, and the condition on a row.
CREATE PROCEDURE keep_place_counts(of regclass, counters jsonb) LANGUAGE plpgsql AS $procedure$
DECLARE
  listed text;
  operation text;
  changed text;
  transition text;
BEGIN
  SELECT string_agg(format('(%L, %s)', key, value), ', ' ORDER BY key) INTO listed FROM jsonb_each_text(counters);
  FOREACH operation IN ARRAY '{insert,delete,update}'::text[] LOOP
    changed := concat_ws(' UNION ALL ',
      CASE WHEN operation <> 'delete' THEN 'SELECT *, 1 AS delta FROM new_rows' END,
      CASE WHEN operation <> 'insert' THEN 'SELECT *, -1 AS delta FROM old_rows' END);
    transition := concat_ws(' ', CASE WHEN operation <> 'delete' THEN 'NEW TABLE AS new_rows' END,
      CASE WHEN operation <> 'insert' THEN 'OLD TABLE AS old_rows' END);
    EXECUTE format($function$
      CREATE FUNCTION %1$I() RETURNS trigger LANGUAGE plpgsql AS $body$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() %% 8, sum(r.delta) FROM (%2$s) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES %3$s) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $body$ $function$, format('%s_counted_%s', of, operation), changed, listed);
    EXECUTE format('CREATE TRIGGER %1$I AFTER %2$s ON %3$s REFERENCING %4$s FOR EACH STATEMENT EXECUTE FUNCTION %1$I()',
      format('%s_counted_%s', of, operation), operation, of, transition);
  END LOOP;
END $procedure$;

CALL keep_place_counts('augmentations', '{"augmentations": "true", "augmentations.active": "r.status = ''active''"}');
CALL keep_place_counts('endpoints', '{"endpoints": "true", "endpoints.enabled": "r.enabled"}');
CALL keep_place_counts('actions', '{"actions": "true", "actions.enabled": "r.enabled",
  "actions.manual": "r.kind = ''manual''", "actions.trigger": "r.kind = ''trigger''",
  "actions.scheduled": "r.kind = ''scheduled''"}');

-- What every second looks for.
CREATE INDEX actions_due ON actions (next_fire_at) WHERE next_fire_at IS NOT NULL;
