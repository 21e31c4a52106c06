// Runs in a thread of its own: whoever sends a document decides how long it takes to read.
import { serveTasks } from '../../platform/threads/thread-work.ts';
import { DocumentFault } from './document-text.ts';
import type { ReadEnd, ReadTask } from './import-plan.ts';
import { readDocument } from './read-document.ts';
import { readServer } from './server-actions.ts';

serveTasks((task: ReadTask): ReadEnd => {
  try {
    return { read: task.kind === 'mcp' ? readServer(task) : readDocument(task) };
  } catch (error) {
    if (error instanceof DocumentFault) return { refusal: error.message };
    throw error;
  }
});
