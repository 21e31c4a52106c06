-- whose key it is and what it takes, so that one user cannot fill the table. Keys of before live for a day at most.
ALTER TABLE "idempotency_keys" ADD COLUMN "user_id" TEXT, ADD COLUMN "size_bytes" INTEGER NOT NULL DEFAULT 0;
CREATE INDEX "idempotency_keys_user_id_created_at_idx" ON "idempotency_keys"("user_id", "created_at");
