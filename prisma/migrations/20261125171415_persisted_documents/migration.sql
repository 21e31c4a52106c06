-- CreateTable
CREATE TABLE "persisted_documents" (
    "id" TEXT NOT NULL,
    "text" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "persisted_documents_pkey" PRIMARY KEY ("id")
);
