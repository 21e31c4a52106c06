-- The scopes that the last authorization of a connection asked for, beside those that were granted. What connections of
-- before had asked for is not known: they have none until they are authorized again, so none of them counts as missing.
ALTER TABLE "connections" ADD COLUMN     "requested_scopes" TEXT[] DEFAULT ARRAY[]::TEXT[];
