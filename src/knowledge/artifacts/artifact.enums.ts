import { wordEnum } from '../../graphql/word-enum.ts';

export const ArtifactScope = wordEnum('ArtifactScope', 'Where an artifact belongs.', {
  thread: 'In a thread, which it outlives.',
  namespace: 'In a namespace.',
  workspace: 'In the workspace: it was promoted.',
});

export const ArtifactStatus = wordEnum('ArtifactStatus', 'Status of an artifact.', {
  active: 'It is in use.',
  archived: 'It was put away.',
  superseded: 'There is a later version.',
  expired: 'Its lifetime has ended.',
});
