-- The version of each resource, which `expectedVersion` and `If-Match` are held against. A constant default rewrites no table.
-- AlterTable
ALTER TABLE "api_tokens" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "apps" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "environments" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "invitations" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "logical_models" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "model_entitlements" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "namespaces" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "organization_members" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "organizations" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "provider_accounts" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "releases" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "secrets" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "threads" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "users" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "workspace_members" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "workspaces" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

-- Raises the version of the row that is being updated. A writer that raised it further has its way.
CREATE FUNCTION raise_resource_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.resource_version := greatest(NEW.resource_version, OLD.resource_version + 1);
  RETURN NEW;
END $$;

-- Makes `<table>_content_changed(before, after)`: whether more changed than the quiet columns, which the service keeps for itself or
-- which move by themselves, such as counters. `updated_at` is quiet where a quiet column moved with it. It compares rows and not
-- JSON, which costs a fifth. A column that is added later counts; one that is dropped from the quiet ones needs the function anew.
CREATE PROCEDURE define_content_changed(of regclass, quiet text[]) LANGUAGE plpgsql AS $$
DECLARE
  unknown text := (SELECT string_agg(q, ', ') FROM unnest(quiet) q
    WHERE NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = of AND a.attname = q AND a.attnum > 0 AND NOT a.attisdropped));
  has_time boolean := EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = of AND a.attname = 'updated_at' AND NOT a.attisdropped);
  touched text := CASE WHEN has_time
    THEN 'after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF;' ELSE '' END;
  calmed text := (SELECT string_agg(format('after.%1$I := before.%1$I;', q), ' ') FROM unnest(quiet) q);
BEGIN
  IF unknown IS NOT NULL THEN RAISE EXCEPTION '% has no column %', of, unknown; END IF;
  EXECUTE format('CREATE FUNCTION %I(before %s, after %s) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS %L',
    of || '_content_changed', of, of, format('BEGIN %s %s RETURN after IS DISTINCT FROM before; END', touched, calmed));
END $$;

-- Keeps the version of a table's rows: every update that changes more than the quiet columns raises it, whoever writes it.
CREATE PROCEDURE keep_resource_version(of regclass, quiet text[] DEFAULT '{}') LANGUAGE plpgsql AS $$
DECLARE
  more text := '';
BEGIN
  IF quiet <> '{}' THEN
    CALL define_content_changed(of, quiet);
    more := format(' AND %I(OLD, NEW)', of || '_content_changed');
  END IF;
  EXECUTE format('CREATE TRIGGER resource_version BEFORE UPDATE ON %s FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*%s)
    EXECUTE FUNCTION raise_resource_version()', of, more);
END $$;

CALL keep_resource_version('organizations');
CALL keep_resource_version('organization_members');
CALL keep_resource_version('invitations');
CALL keep_resource_version('users', '{last_login,purged_at}');
CALL keep_resource_version('workspaces', '{bucket_status}');
CALL keep_resource_version('workspace_members');
CALL keep_resource_version('namespaces');
CALL keep_resource_version('threads');
CALL keep_resource_version('apps', '{last_release}');
CALL keep_resource_version('releases');
CALL keep_resource_version('environments');
CALL keep_resource_version('provider_accounts', '{status,status_reason,last_health_check,consecutive_failures,auth_failures,current_month_tokens,current_month_requests,usage_period}');
CALL keep_resource_version('logical_models');
CALL keep_resource_version('model_entitlements', '{request_count,total_tokens,last_used_at}');
CALL keep_resource_version('secrets', '{access_count,last_accessed_at,root_key_id,wrapped_key,rotation_noticed_at,expiry_noticed_at}');
CALL keep_resource_version('api_tokens', '{last_used_at,noticed_days,reissued_at}');

-- Raises the version of the rows that show this one: those of table $0 whose column $1 is this row's column $2. Once per transaction: what
-- it has written already has been raised, or is new.
CREATE FUNCTION raise_resource_version_of() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('UPDATE %I SET resource_version = resource_version + 1 WHERE %I = $1 AND xmin <> pg_current_xact_id()::xid',
    TG_ARGV[0], TG_ARGV[1]) USING to_jsonb(coalesce(NEW, OLD)) ->> TG_ARGV[2];
  RETURN NULL;
END $$;

-- A model shows its targets; how they fare moves by itself.
CALL define_content_changed('model_targets', '{consecutive_failures,last_failure,last_success,average_latency_ms,latency_at,cost_per_1k_tokens,cost_at}');
CREATE TRIGGER resource_version_of_model AFTER INSERT OR DELETE ON model_targets FOR EACH ROW
  EXECUTE FUNCTION raise_resource_version_of('logical_models', 'id', 'model_id');
CREATE TRIGGER resource_version_of_changed_model AFTER UPDATE ON model_targets FOR EACH ROW
  WHEN (OLD.* IS DISTINCT FROM NEW.* AND model_targets_content_changed(OLD, NEW))
  EXECUTE FUNCTION raise_resource_version_of('logical_models', 'id', 'model_id');

-- Members show their user.
CREATE TRIGGER resource_version_of_workspace_members AFTER UPDATE ON users FOR EACH ROW
  WHEN ((OLD.username, OLD.email, OLD.full_name, OLD.avatar_url) IS DISTINCT FROM (NEW.username, NEW.email, NEW.full_name, NEW.avatar_url))
  EXECUTE FUNCTION raise_resource_version_of('workspace_members', 'user_id', 'id');
CREATE TRIGGER resource_version_of_organization_members AFTER UPDATE ON users FOR EACH ROW
  WHEN ((OLD.username, OLD.email, OLD.full_name, OLD.avatar_url) IS DISTINCT FROM (NEW.username, NEW.email, NEW.full_name, NEW.avatar_url))
  EXECUTE FUNCTION raise_resource_version_of('organization_members', 'user_id', 'id');

-- An environment shows what is deployed in it. Those who deploy share its row, so its version is that of the row plus the number of records
-- of its slots. A slot goes with its app: its records then stay in the row, and one more for its going.
CREATE FUNCTION keep_version_of_environment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE environments SET resource_version = resource_version + OLD.last_number + 1 WHERE id = OLD.environment_id;
  RETURN NULL;
END $$;
CREATE TRIGGER resource_version_of_environment AFTER DELETE ON environment_slots FOR EACH ROW
  EXECUTE FUNCTION keep_version_of_environment();
