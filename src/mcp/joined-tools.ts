import type { Tool } from '@modelcontextprotocol/server';
import type { McpCall, McpRequest, ToolAnswer, ToolFace } from './tool.ts';

/** The tools of several faces in one list. No two of them have tools of the same name. */
export class JoinedTools implements ToolFace {
  readonly instructions: string;
  readonly #faces: readonly ToolFace[];

  /** @param note what the client tells its model before all else */
  constructor(faces: readonly ToolFace[], note = '') {
    this.#faces = faces;
    this.instructions = [note, ...faces.map(({ instructions }) => instructions)].filter(Boolean).join(' ');
  }

  async list(request: McpRequest): Promise<Tool[]> {
    const lists = await Promise.all(this.#faces.map((face) => face.list(request)));
    return lists.flat();
  }

  async call(name: string, args: unknown, call: McpCall): Promise<ToolAnswer | null> {
    for (const face of this.#faces) {
      const answer = await face.call(name, args, call);
      if (answer) return answer;
    }
    return null;
  }
}
