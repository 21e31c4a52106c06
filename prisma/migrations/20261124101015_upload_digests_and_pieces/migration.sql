-- The digest of what an artifact consists of. Those of existing artifacts are written here: of files they are known, of
-- texts they are computed, at some hundred megabytes a second. Nothing that a client has seen changes, so no version is
-- raised. `sha256` takes bytes, and the database is in UTF-8.
ALTER TABLE "artifacts" ADD COLUMN     "sha256" TEXT;

ALTER TABLE artifacts DISABLE TRIGGER resource_version;
UPDATE artifacts a SET sha256 = f.sha256 FROM files f WHERE f.id = a.file_id AND f.sha256 IS NOT NULL;
UPDATE artifacts SET sha256 = encode(sha256(convert_to(content, 'UTF8')), 'hex') WHERE content IS NOT NULL;
ALTER TABLE artifacts ENABLE TRIGGER resource_version;

-- A file may arrive in pieces. A file of before arrived in one.
ALTER TABLE "files" ADD COLUMN     "declared_bytes" BIGINT,
ADD COLUMN     "declared_sha256" TEXT,
ADD COLUMN     "expires_at" TIMESTAMPTZ(3),
ADD COLUMN     "part_of" TEXT,
ADD COLUMN     "received_bytes" BIGINT,
ADD COLUMN     "starts_at" BIGINT,
ADD COLUMN     "writer" TEXT;

CREATE INDEX "files_part_of_idx" ON "files"("part_of");

-- An old version that is restored is the file of two versions.
ALTER TABLE artifacts DROP CONSTRAINT artifacts_file_id_key;
CREATE INDEX "artifacts_file_id_idx" ON "artifacts"("file_id");

-- Bytes go after the last row that shows them, however it goes. Whoever restores a version holds the row of its file
-- meanwhile: only the second statement sees what was written by then.
CREATE OR REPLACE FUNCTION release_file_of_artifact() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM files WHERE id = OLD.file_id FOR UPDATE;
  UPDATE files SET state = 'removing' WHERE id = OLD.file_id
    AND NOT EXISTS (SELECT 1 FROM artifacts WHERE file_id = OLD.file_id);
  RETURN NULL;
END $$;
