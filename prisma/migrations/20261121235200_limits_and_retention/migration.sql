-- What reports told of a target lately: its latency, and its cost for 1,000 tokens.
ALTER TABLE "model_targets" ADD COLUMN "average_latency_ms" DOUBLE PRECISION;
ALTER TABLE "model_targets" ADD COLUMN "latency_at" TIMESTAMPTZ(3);
ALTER TABLE "model_targets" ADD COLUMN "cost_per_1k_tokens" DOUBLE PRECISION;
ALTER TABLE "model_targets" ADD COLUMN "cost_at" TIMESTAMPTZ(3);

-- Of a token that a token made: the family of the first one of the line.
ALTER TABLE "api_tokens" ADD COLUMN "root_family_id" TEXT;
WITH RECURSIVE lines AS (
  SELECT family_id, family_id AS root FROM api_tokens WHERE maker_family_id IS NULL
  UNION SELECT t.family_id, l.root FROM api_tokens t JOIN lines l ON t.maker_family_id = l.family_id
)
UPDATE api_tokens t SET root_family_id = l.root FROM lines l WHERE l.family_id = t.family_id AND t.maker_family_id IS NOT NULL;

-- Those that their people may have to be told of before they expire.
CREATE INDEX secrets_expiring ON secrets (expires_at)
  WHERE status <> 'deleted' AND (expiry_noticed_at IS NULL OR expiry_noticed_at < expires_at);

-- What retention removes.
CREATE INDEX secrets_deleted ON secrets (deleted_at) WHERE status = 'deleted';
CREATE INDEX api_tokens_revoked ON api_tokens (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX api_tokens_refreshable ON api_tokens (refresh_expires_at) WHERE refresh_expires_at IS NOT NULL;

-- How many a user has made.
CREATE INDEX organizations_made ON organizations (created_by) WHERE deleted_at IS NULL;
