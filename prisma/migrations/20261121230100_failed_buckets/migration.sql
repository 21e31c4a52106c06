-- what is looked for again and again, in a table that grows
CREATE INDEX workspaces_bucket_failed ON workspaces (id) WHERE bucket_status = 'failed';
