import { wordEnum } from '../../graphql/word-enum.ts';
import { recipeCategories } from './recipe.words.ts';

export const RecipeCategoryName = wordEnum(
  'RecipeCategoryName',
  'How much experience a recipe requires.',
  {
    starter: 'For a first app.',
    intermediate: 'For those who have made apps.',
    advanced: 'For those who know the parts of an app well.',
  },
  recipeCategories,
);
