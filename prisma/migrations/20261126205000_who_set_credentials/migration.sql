-- AlterTable
ALTER TABLE "credentials" ADD COLUMN     "set_by" TEXT;

-- The maker of an instance or of a connection gave its value if both were written by one transaction, whose time they
-- have, and nothing was written since. Of all others nobody knows who gave it.
UPDATE credentials c SET set_by = i.created_by
FROM tool_instances i
WHERE i.id = c.tool_instance_id AND c.version = 1 AND c.created_at = i.created_at;

UPDATE credentials c SET set_by = t.created_by
FROM connections t
WHERE t.id = c.connection_id AND c.version = 1 AND c.created_at = t.created_at AND t.auth_type = 'api_key';
