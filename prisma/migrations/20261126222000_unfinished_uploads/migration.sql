-- An upload that goes on is found by its user and its checksum, and not among all that the installation receives.
CREATE INDEX files_unfinished ON files (created_by, declared_sha256)
  WHERE state = 'receiving' AND declared_sha256 IS NOT NULL;
