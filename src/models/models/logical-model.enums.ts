import { wordEnum } from '../../graphql/word-enum.ts';

export const LogicalModelStatus = wordEnum('LogicalModelStatus', 'Status of a model.', {
  active: 'All its targets are healthy, or it has none.',
  degraded: 'Some of its targets are healthy.',
  unavailable: 'None of its targets is healthy.',
  deprecated: 'It should no longer be used, as an administrator has said.',
  disabled: 'It is not used, as an administrator has said.',
});
