import { builder } from './builder.ts';

/** The answer of operations that only say that they did it. */
export const MessageResult = builder.objectRef<{ message: string }>('MessageResult').implement({
  description: 'The result of an operation that returns only a message.',
  fields: (t) => ({ message: t.exposeString('message', { description: 'What was done.' }) }),
});
