-- CreateTable
CREATE TABLE "service_markers" (
    "name" TEXT NOT NULL,
    "value" TEXT NOT NULL,
    "set_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "service_markers_pkey" PRIMARY KEY ("name")
);
