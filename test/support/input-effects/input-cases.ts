import { accountCases } from './accounts.cases.ts';
import { auditStreamCases } from './audit-streams.cases.ts';
import { connectionCases } from './connections.cases.ts';
import { factorCases } from './factors.cases.ts';
import { fileCases } from './files.cases.ts';
import type { InputCase } from './input-case.ts';
import { recipeCases } from './recipes.cases.ts';
import { resourceCases } from './resources.cases.ts';
import { runCases } from './runs.cases.ts';
import { signInCases } from './sign-in.cases.ts';
import { toolImportCases } from './tool-imports.cases.ts';
import { webhookCases } from './webhooks.cases.ts';

/** THE place to add what a new field of an input does, in the file of its subject. */
export const inputCases: Readonly<Record<string, InputCase>> = {
  ...accountCases,
  ...auditStreamCases,
  ...connectionCases,
  ...factorCases,
  ...fileCases,
  ...recipeCases,
  ...resourceCases,
  ...runCases,
  ...signInCases,
  ...toolImportCases,
  ...webhookCases,
};
