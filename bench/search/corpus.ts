// Documents and questions for measuring the search, written for it. In each domain three documents answer a question;
// the others are about the same things and answer none. Each answer has two questions: one with words of the document,
// and one that says it in other words, written without trying what the search finds.

/** What is known in one domain. */
interface Domain {
  /** Documents that answer: title, text, a question, and one of someone who does not know the words of the text. */
  answers: readonly (readonly [title: string, text: string, question: string, paraphrase: string])[];
  /** What the other documents are about. */
  subjects: readonly string[];
  /** What they say of it. */
  remarks: readonly string[];
}

const domains: readonly Domain[] = [
  {
    answers: [
      [
        'Compressor note 14',
        'The cold room alarm went off because ice had closed the evaporator fan. Defrosting takes forty ' +
          'minutes; start it by holding both arrow keys on the panel.',
        'how do I start defrosting the evaporator of the cold room',
        'which buttons melt the frost in the walk-in freezer',
      ],
      [
        'Seal kit',
        'Oil on the floor under the compressor nearly always comes from the shaft seal. The kit has number ' +
          '77-310 and fits all models since 2015.',
        'which seal kit do I need when oil drips from the compressor shaft',
        'part number to repair a leaking compressor',
      ],
      [
        'Night setting',
        'Between ten in the evening and six in the morning the chillers run at half speed, so that the ' +
          'neighbours can sleep.',
        'when do the chillers slow down because of the neighbours',
        'hours in which the cooling must be quiet',
      ],
    ],
    subjects: ['The compressor in hall two', 'The chiller on the roof', 'The cold room', 'The evaporator'],
    remarks: [
      'was inspected in spring without findings',
      'has a service contract until the end of next year',
      'uses less power than the one it replaced',
      'is listed in the plan of the building',
    ],
  },
  {
    answers: [
      [
        'Refund rules',
        'A customer who returns shoes within thirty days gets the money back. Worn soles are exchanged for a ' +
          'voucher instead.',
        'can a customer return shoes with worn soles',
        'someone sends back boots that were used outside, what do they get',
      ],
      [
        'Parcels to islands',
        'Delivery to the islands costs twelve euros more and leaves on Tuesdays, when the ferry runs.',
        'on which day does the ferry take parcels to the islands',
        'surcharge for shipping a package across the water',
      ],
      [
        'Broken in transit',
        'If glass arrives broken, ask for a photograph of the box first. The carrier pays only with one ' +
          'taken on the day of delivery.',
        'what must we ask for before the carrier pays for broken glass',
        'proof needed to claim damage during shipping',
      ],
    ],
    subjects: ['The spring catalogue', 'The delivery service', 'The returns desk', 'The customer newsletter'],
    remarks: [
      'gets a new layout before the summer sale',
      'is handled by the team in Leeds',
      'was praised by customers in the last survey',
      'costs about as much as last year',
    ],
  },
  {
    answers: [
      [
        'Sourdough, second try',
        'The loaf came out flat since the starter was three days old. Feed it twelve hours before baking and ' +
          'use water at thirty degrees.',
        'how many hours before baking should the sourdough starter be fed',
        'my bread did not rise, what went wrong',
      ],
      [
        'Jam for the fair',
        'Apricots set without added pectin when a third of them is unripe. Skim the foam, then stir in the lemon.',
        'why does apricot jam set without pectin',
        'making marmalade firm without a gelling agent',
      ],
      [
        'Allergens in the canteen',
        'The lentil soup contains celery, and the brown sauce is thickened with wheat flour. The curry has neither.',
        'does the lentil soup contain celery',
        'which lunch is safe for someone who cannot eat gluten',
      ],
    ],
    subjects: ['The bread oven', 'The canteen kitchen', 'The jam for the fair', 'The soup of the day'],
    remarks: [
      'is prepared by two people each morning',
      'was a favourite of the visitors in autumn',
      'needs flour, butter and some patience',
      'comes from a recipe of the founder',
    ],
  },
  {
    answers: [
      [
        'Vacation carry-over',
        'Unused vacation days expire at the end of March. Parents returning from leave keep theirs until September.',
        'until when can parents keep unused vacation days',
        "deadline for taking last year's holidays",
      ],
      [
        'Sick notes',
        'A doctor’s certificate is required from the fourth day of illness. Send it to payroll, not to your manager.',
        'who gets the certificate when I am ill for more than three days',
        'I have had the flu all week, which paper do I hand in',
      ],
      [
        'Bicycle leasing',
        'Employees can lease a bicycle through their salary after the probation period. The contract lasts ' +
          'thirty-six months.',
        'how long does a bicycle leasing contract last',
        'getting a bike paid out of my wages',
      ],
    ],
    subjects: ['The payroll department', 'The employee handbook', 'The probation period', 'The parental leave policy'],
    remarks: [
      'is explained on the first day in the office',
      'was revised together with the works council',
      'applies to full-time and part-time contracts',
      'has an owner in human resources',
    ],
  },
  {
    answers: [
      [
        'Backup drill of May',
        'Restoring the billing database from the nightly snapshot took fifty-two minutes, most of it spent ' +
          'replaying the write-ahead log.',
        'how long did restoring the billing database take',
        'recovery time when we lose the invoices system',
      ],
      [
        'Certificate outage',
        'The wildcard certificate had expired on a Sunday because the renewal job ran under a deleted service account.',
        'why was the wildcard certificate not renewed',
        'what caused the TLS failure at the weekend',
      ],
      [
        'Queue growth',
        'Messages pile up when a consumer acknowledges slowly. Raising the prefetch count to two hundred ' +
          'cleared the backlog within minutes.',
        'what prefetch count helps against a backlog of messages',
        'workers cannot keep up with incoming events',
      ],
    ],
    subjects: ['The billing database', 'The message queue', 'The monitoring dashboard', 'The nightly snapshot'],
    remarks: [
      'runs on three machines in two data centres',
      'is upgraded in the first week of a quarter',
      'has an entry in the on-call guide',
      'was moved to newer hardware in winter',
    ],
  },
  {
    answers: [
      [
        'Tomatoes under glass',
        'Yellow leaves at the bottom of tomato plants mean a lack of magnesium. A spoon of Epsom salt in ten ' +
          'litres of water helps.',
        'what helps when the lower leaves of tomatoes turn yellow',
        'plants in the greenhouse look pale at the foot, which mineral is missing',
      ],
      [
        'Hedge law',
        'Between March and the end of September hedges must not be cut back hard, as birds nest in them. ' +
          'Light trimming is allowed.',
        'in which months is cutting hedges forbidden because of nesting birds',
        'am I permitted to prune shrubs in summer',
      ],
      [
        'Wasps in the shed',
        'A wasp nest as large as a football dies with the first frost. Leave the shed door closed and put up a sign.',
        'should we remove the wasp nest in the shed or wait for frost',
        'stinging insects in the tool hut, call somebody',
      ],
    ],
    subjects: ['The greenhouse', 'The old hedge', 'The vegetable garden', 'The compost heap'],
    remarks: [
      'gets water from the rain barrel',
      'is looked after by volunteers on Saturdays',
      'was planted by the school in April',
      'needs shade in the hottest weeks',
    ],
  },
  {
    answers: [
      [
        'Knee programme',
        'After the operation patients may cycle without resistance from the third week. Jogging is allowed ' +
          'after four months at the earliest.',
        'when may patients jog again after the knee operation',
        'how soon can one go running following surgery',
      ],
      [
        'Insulin storage',
        'Opened insulin pens keep for twenty-eight days at room temperature; unopened ones belong in the ' +
          'refrigerator, never in the freezer.',
        'how many days does an opened insulin pen keep',
        'shelf life of a diabetes injection out of the fridge',
      ],
      [
        'Visiting hours',
        'Two visitors at a time are welcome on the ward from two to eight. Children come with an adult.',
        'how many visitors may come to the ward at once',
        'can the whole family see grandma in hospital this afternoon',
      ],
    ],
    subjects: ['The ward on the third floor', 'The physiotherapy group', 'The pharmacy', 'The patient folder'],
    remarks: [
      'is open on weekdays from eight to five',
      'got new furniture thanks to a donation',
      'works together with the family doctors',
      'keeps its records for ten years',
    ],
  },
  {
    answers: [
      [
        'Lease of the Harbour Street office',
        'The lease may be terminated with six months’ notice to the end of a calendar year. The deposit of ' +
          'three rents is in an escrow account.',
        'what notice period does the lease in Harbour Street have',
        'how do we get out of the rental contract for our premises',
      ],
      [
        'Non-disclosure template',
        'Our standard agreement keeps information confidential for five years, except source code, which ' +
          'stays confidential forever.',
        'for how many years is information confidential in our standard agreement',
        'how long must a partner keep our secrets',
      ],
      [
        'Trademark watch',
        'An opposition against a similar trademark has to be filed within three months of its publication. ' +
          'The fee is due with the filing.',
        'how soon must we file an opposition against a trademark',
        'a competitor registers a brand like ours, until when can we object',
      ],
    ],
    subjects: ['The lease agreement', 'The trademark register', 'The legal department', 'The standard contract'],
    remarks: [
      'was checked by an outside law firm',
      'is kept in the archive in the basement',
      'has been translated into French',
      'will be discussed with the landlord',
    ],
  },
  {
    answers: [
      [
        'Sensor drift',
        'Humidity readings drift by two percent a year. Recalibrate the probes over a saturated salt ' +
          'solution, which gives exactly seventy-five percent.',
        'how are the humidity probes recalibrated',
        'our moisture measurements are off, how do we adjust the instruments',
      ],
      [
        'Station on the ridge',
        'In storms the anemometer on the ridge freezes. The heated model needs forty watts, more than the ' +
          'solar panel delivers in January.',
        'why can the ridge station not run a heated anemometer in January',
        'wind speed is missing on the mountain in bad weather',
      ],
      [
        'Missing rain',
        'Rain gauges under trees report too little. Leaves blocked the funnel at the mill, so its October ' +
          'totals were removed.',
        'why were the October totals of the rain gauge at the mill removed',
        'autumn precipitation data was deleted, for what reason',
      ],
    ],
    subjects: ['The weather station', 'The rain gauge', 'The humidity probe', 'The data logger'],
    remarks: [
      'sends a reading every ten minutes',
      'runs on a battery and a solar panel',
      'was installed by students of geography',
      'stands one metre and a half above the ground',
    ],
  },
  {
    answers: [
      [
        'Choir tour',
        'The coach to Ghent leaves at half past six from the north car park. Folders and black shoes travel ' +
          'in the hold.',
        'where does the coach to Ghent leave from',
        'when does the bus of the singers depart',
      ],
      [
        'Piano tuning',
        'The grand piano is tuned twice a year, in October when the heating starts and before the spring concert.',
        'how often is the grand piano tuned',
        'in which seasons does the tuner visit',
      ],
      [
        'Rights for the musical',
        'The publisher charges nine percent of the ticket income for the rights and wants the posters to ' +
          'show its logo.',
        'what share of the ticket income does the publisher of the musical charge',
        'royalties for staging the show',
      ],
    ],
    subjects: ['The choir', 'The concert hall', 'The spring concert', 'The music library'],
    remarks: [
      'rehearses on Wednesday evenings',
      'has a hundred and twenty seats',
      'is supported by the town council',
      'was reviewed in the local newspaper',
    ],
  },
  {
    answers: [
      [
        'Forklift rules',
        'Forklifts must stop at the yellow line and sound the horn. Pedestrians have priority inside the marked lanes.',
        'where must a forklift sound its horn',
        'who goes first when people walk where lift trucks drive',
      ],
      [
        'Pallet heights',
        'Pallets of paint may be stacked two high, those of paper four high. The top bay carries eight hundred kilos.',
        'how high may pallets of paint be stacked',
        'maximum load of the uppermost shelf',
      ],
      [
        'Stock count',
        'During the yearly count the gates stay closed for two days. Express orders leave from the branch in Gdansk.',
        'where do express orders leave from during the stock count',
        'urgent shipments while we take inventory',
      ],
    ],
    subjects: ['The warehouse', 'The loading ramp', 'The top bay', 'The forklift fleet'],
    remarks: [
      'was painted during the summer break',
      'is checked by the safety officer every month',
      'has room for six hundred pallets',
      'will get brighter lamps soon',
    ],
  },
  {
    answers: [
      [
        'Telescope evening',
        'Saturn’s rings are seen best around opposition, at the end of August. Bring a red torch so that ' +
          'eyes stay adapted to the dark.',
        'why should guests bring a red torch to the telescope evening',
        'which colour of flashlight is allowed when we watch planets',
      ],
      [
        'Mirror cleaning',
        'Dust on the main mirror does little harm. Rinse it with distilled water once in five years and ' +
          'never wipe it dry.',
        'how often should the telescope mirror be rinsed',
        'the optics are dirty, should I clean them',
      ],
      [
        'Meteorite find',
        'The stone from the quarry is no meteorite: it has bubbles, and a magnet does not stick to it.',
        'how do we know that the stone from the quarry is not a meteorite',
        'is the rock that the children discovered from space',
      ],
    ],
    subjects: ['The telescope', 'The observatory dome', 'The astronomy club', 'The star chart'],
    remarks: [
      'attracts families on clear nights',
      'was a gift of a retired teacher',
      'is moved by a small electric motor',
      'can be borrowed by members',
    ],
  },
  {
    answers: [
      [
        'Grant report dates',
        'The interim report of the river project is due on the fifteenth of June; the foundation holds back ' +
          'a tenth of the money until the final one.',
        'when is the interim report of the river project due',
        'deadline for the midterm paper to our sponsor',
      ],
      [
        'Volunteer insurance',
        'Volunteers are insured on the way to the event and back, but not for damage to their own cars.',
        'does the insurance of volunteers cover damage to their cars',
        'a helper crashed on the drive home, who pays',
      ],
      [
        'Donation receipts',
        'For gifts under three hundred euros the bank statement is enough for the tax office. Above that we ' +
          'send a receipt in January.',
        'from which amount do donors get a receipt for the tax office',
        'proof of charity contributions for the income declaration',
      ],
    ],
    subjects: ['The foundation', 'The river project', 'The volunteer meeting', 'The donation campaign'],
    remarks: [
      'is mentioned in the annual report',
      'has found two new partners',
      'takes place in the community centre',
      'was started twenty years ago',
    ],
  },
  {
    answers: [
      [
        'Login fails after rename',
        'Users who were renamed in the directory cannot sign in until their session cache is cleared. ' +
          'Restarting the gateway clears it for everybody.',
        'users cannot sign in after they were renamed in the directory',
        'colleague married, changed her surname and is now locked out',
      ],
      [
        'Import of large spreadsheets',
        'Spreadsheets beyond fifty thousand rows are rejected by the importer. Split them by region and ' +
          'import the parts one after another.',
        'how many rows of a spreadsheet does the importer accept',
        'my Excel file is too big to upload',
      ],
      [
        'Mobile app crash',
        'On older phones the app crashes when a picture is attached, because the camera returns it in full ' +
          'resolution. Version 4.2 shrinks it first.',
        'which version fixes the crash when attaching a picture on older phones',
        'application closes when I add a photo on an old handset',
      ],
    ],
    subjects: ['The mobile app', 'The sign-in page', 'The import wizard', 'The support portal'],
    remarks: [
      'is available in nine languages',
      'was redesigned by the team in Lisbon',
      'gets an update every second week',
      'has its own chapter in the manual',
    ],
  },
  {
    answers: [
      [
        'Bridge closure',
        'From Monday the canal bridge is closed to lorries above seven tonnes. The detour through Millbrook ' +
          'adds eleven kilometres.',
        'how long is the detour for lorries while the canal bridge is closed',
        'heavy trucks have to go another way, which village do they pass',
      ],
      [
        'Parking for residents',
        'Residents pay thirty euros a year for a permit. Electric cars park free at the chargers for two hours.',
        'what does a parking permit cost residents',
        'annual price for leaving my car in front of my home',
      ],
      [
        'Night buses',
        'The night bus runs every hour until four on weekends. Tickets bought in the app are ten percent cheaper.',
        'until what time does the night bus run on weekends',
        'how do I get home late on Saturday by public transport',
      ],
    ],
    subjects: ['The canal bridge', 'The bus line', 'The ring road', 'The bicycle path'],
    remarks: [
      'was widened in the last decade',
      'is used by thousands of people each day',
      'will be discussed in the council in May',
      'has new signs and lamps',
    ],
  },
  {
    answers: [
      [
        'Roof survey',
        'The flat roof leaks where the skylight meets the bitumen sheet. The roofer recommends a new ' +
          'flashing before the first snow.',
        'where does the flat roof leak',
        'water drips from the ceiling after rain, who fixes it',
      ],
      [
        'Boiler pressure',
        'When the boiler shows less than one bar, open the blue valve in the cellar until the needle reaches ' +
          'one and a half.',
        'what do I do when the boiler pressure is below one bar',
        'radiators stay cold, how to refill the heating',
      ],
      [
        'Mould in flat nine',
        'Mould behind the wardrobe came from a cold outer wall. Keep ten centimetres of distance and air the ' +
          'room twice a day.',
        'how far should the wardrobe stand from the wall to avoid mould',
        'black spots in the bedroom behind furniture',
      ],
    ],
    subjects: ['The roof', 'The boiler room', 'The stairwell', 'Flat number nine'],
    remarks: [
      'was renovated before the tenants moved in',
      'is cleaned by a firm every Thursday',
      'appears on page three of the survey',
      'needs a coat of paint next year',
    ],
  },
  {
    answers: [
      [
        'Apprentice test',
        'The practical exam takes seven hours, and candidates bring their own micrometer. Drawings are ' +
          'handed out in the morning.',
        'what measuring tool do candidates bring to the practical exam',
        'length of the final assessment for trainees',
      ],
      [
        'Thread cutting',
        'For stainless steel reduce the cutting speed by half and use sulphurised oil, or the tap breaks.',
        'what oil prevents the tap from breaking in stainless steel',
        'which lubricant for making threads in hard metal',
      ],
      [
        'Lathe chuck',
        'Remove the chuck key before closing the guard: the spindle does not start while the guard is open.',
        'why does the spindle of the lathe not start',
        'the turning machine will not switch on',
      ],
    ],
    subjects: ['The lathe', 'The workshop', 'The apprentice programme', 'The drilling machine'],
    remarks: [
      'is oiled at the end of every shift',
      'came from a closed factory in Essen',
      'has three places for beginners',
      'was shown to visitors on the open day',
    ],
  },
  {
    answers: [
      [
        'Vet visit for the goats',
        'The vet trims the hooves of the goats every eight weeks and vaccinates the kids against tetanus at ' +
          'three months.',
        'at what age are the goat kids vaccinated against tetanus',
        'when do young animals get their injection',
      ],
      [
        'Bee colony losses',
        'Two colonies died in February, since mites had weakened the winter bees. Treat with oxalic acid ' +
          'when there is no brood.',
        'when should bee colonies be treated with oxalic acid',
        'fighting varroa in the hives',
      ],
      [
        'Hens and foxes',
        'The fox came through the gap under the henhouse door. A wire mesh, dug thirty centimetres deep, keeps it out.',
        'how deep must the wire mesh be to keep the fox out of the henhouse',
        'protecting chickens from predators',
      ],
    ],
    subjects: ['The goat pen', 'The beehives', 'The henhouse', 'The donkey'],
    remarks: [
      'is visited by the kindergarten in spring',
      'stands behind the barn',
      'costs more straw than we thought',
      'was repaired by the neighbours',
    ],
  },
  {
    answers: [
      [
        'Travel expenses abroad',
        'The daily allowance for Norway is seventy-five euros. Hotel breakfast reduces it by a fifth.',
        'how much is the daily allowance in Norway',
        'per diem for a business trip to Oslo',
      ],
      [
        'Company cards',
        'Lost company cards are blocked through the bank’s hotline; a new one arrives within five working days.',
        'how quickly does a replacement for a lost company card arrive',
        'my corporate credit card was stolen, what now',
      ],
      [
        'Invoice approval',
        'Invoices above ten thousand euros need two signatures, one of them from the finance director.',
        'which invoices need the signature of the finance director',
        'who must sign off a large bill',
      ],
    ],
    subjects: ['The finance department', 'The expense tool', 'The yearly audit', 'The hotel contract'],
    remarks: [
      'closes its books on the third working day',
      'asks for receipts in digital form',
      'was praised by the auditors',
      'has a deputy since January',
    ],
  },
  {
    answers: [
      [
        'Reading group, March',
        'We read the diary of a lighthouse keeper who counts ships in the war. Meeting at Ruth’s place, bring scones.',
        'what book about a lighthouse keeper did the reading group choose',
        'novel about someone watching vessels from a tower',
      ],
      [
        'Lost library books',
        'Whoever loses a book pays its price and a fee of five euros. Children under ten pay half.',
        'what does a reader pay for a lost library book',
        'fine when a borrowed novel cannot be found',
      ],
      [
        'Old newspapers',
        'The newspapers before 1950 are on microfilm in the reading room. Prints cost twenty cents a page.',
        'where can I find newspapers from before 1950',
        'looking up historic press articles of the 1930s',
      ],
    ],
    subjects: ['The library', 'The reading room', 'The book sale', 'The reading group'],
    remarks: [
      'opens an hour later in August',
      'has gained forty members',
      'is run by a small team',
      'was founded in the sixties',
    ],
  },
];

/** A document of the corpus. */
export interface CorpusDocument {
  name: string;
  content: string;
}

/** A question, and the name of the document that answers it. */
export interface CorpusQuestion {
  text: string;
  answer: string;
}

/** 60 documents that answer and 320 that do not. */
export const documents: readonly CorpusDocument[] = domains.flatMap(({ answers, subjects, remarks }) => [
  ...answers.map(([name, content]) => ({ name, content })),
  ...subjects.flatMap((subject, row) =>
    remarks.map((remark, column) => {
      const second = remarks[(column + row + 1) % remarks.length]!;
      return {
        name: `${subject.replace(/^The /, '')}: note ${row * remarks.length + column + 1}`,
        content: `${subject} ${remark}. It also ${second}.`,
      };
    }),
  ),
]);

/** Questions with words of the document that answers. */
export const questions: readonly CorpusQuestion[] = domains.flatMap(({ answers }) =>
  answers.map(([answer, , text]) => ({ text, answer })),
);

/** Questions about the same in other words. */
export const paraphrases: readonly CorpusQuestion[] = domains.flatMap(({ answers }) =>
  answers.map(([answer, , , text]) => ({ text, answer })),
);

/** A generator of numbers from 0 to 1 that always gives the same ones (mulberry32). */
export function fixedRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The same text with one typing error in one of its longer words: letters swapped, left out, doubled or replaced. */
export function mistyped(text: string, random: () => number): string {
  const words = [...text.matchAll(/[a-z]{5,}/g)];
  const word = words[Math.floor(random() * words.length)];
  if (!word) return text;
  const at = word.index + 1 + Math.floor(random() * (word[0].length - 2));
  const letters = [...text];
  const kind = Math.floor(random() * 4);
  if (kind === 0) letters.splice(at, 2, letters[at + 1]!, letters[at]!);
  else if (kind === 1) letters[at] = '';
  else if (kind === 2) letters[at] = letters[at]!.repeat(2);
  else letters[at] = String.fromCharCode(97 + Math.floor(random() * 26));
  return letters.join('');
}
