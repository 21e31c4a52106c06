-- CreateTable
CREATE TABLE "nodes" (
    "id" TEXT NOT NULL,
    "host_name" TEXT NOT NULL,
    "address" TEXT,
    "version" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "worker_count" INTEGER NOT NULL,
    "running_worker_count" INTEGER NOT NULL,
    "problem" TEXT,

    CONSTRAINT "nodes_pkey" PRIMARY KEY ("id")
);
