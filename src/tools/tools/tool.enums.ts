import { wordEnum } from '../../graphql/word-enum.ts';
import { customActionTypes, statuses } from './tool.words.ts';

export const ToolStatus = wordEnum(
  'ToolStatus',
  'Status of a tool.',
  {
    active: 'It is in use.',
    beta: 'It is in use, and may change.',
    deprecated: 'It should no longer be used. Instances below `minSchemaVersion` are deprecated.',
    disabled: 'It has no new instances.',
  },
  statuses,
);

export const CustomActionType = wordEnum(
  'CustomActionType',
  'Which custom actions the instances of a tool may have.',
  {
    none: 'None.',
    custom_rest: 'Requests to an HTTP service.',
    data_transform: 'Transformations of data.',
    mcp: 'Functions of an MCP server.',
  },
  customActionTypes,
);
