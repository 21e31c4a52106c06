import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { isMarked } from './marks.ts';

/**
 * The order of Vitest, but in each project the files that say `// takes long: <reason>` come first. Without times of a
 * run before, Vitest takes large files for long ones: a small one that took long was the last, and one processor idle.
 */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ordered = await super.sort(files);
    const isLong = new Map(ordered.map((file) => [file, isMarked(file.moduleId, 'takes long')]));
    return [...new Set(ordered.map(({ project }) => project))].flatMap((project) => {
      const own = ordered.filter((file) => file.project === project);
      return [...own.filter((file) => isLong.get(file)), ...own.filter((file) => !isLong.get(file))];
    });
  }
}
