// Documents and questions in several languages, written for measuring the search. Questions have words of their
// document in other forms where the language has forms; other documents of the language are about the same things and
// answer none.

/** What is known in one language. */
interface Language {
  /** ISO 639-1. */
  language: string;
  /** Documents that answer: title, text, and a question. */
  answers: readonly (readonly [title: string, text: string, question: string])[];
  /** Documents that answer nothing. */
  others: readonly string[];
}

/** The documents of each language, all in one namespace. */
export const languages: readonly Language[] = [
  {
    language: 'zh',
    answers: [
      [
        '制冷机手册',
        '冷库报警的原因是蒸发器风扇结冰。除霜需要四十分钟，同时按住两个方向键即可开始。',
        '怎样给蒸发器除霜',
      ],
      ['退货规定', '顾客在三十天内退回鞋子可以全额退款。鞋底已经磨损的只能换成代金券。', '鞋底磨损还能退款吗'],
      ['年假结转', '没有用完的年假在三月底作废，休完产假回来的员工可以保留到九月。', '年假什么时候作废'],
    ],
    others: [
      '二号车间的冷库去年春天检查过，没有发现问题。',
      '退货部门由上海的团队负责，顾客评价很好。',
      '员工手册每年更新一次。',
    ],
  },
  {
    language: 'ja',
    answers: [
      [
        '冷凍庫の警報',
        '警報が鳴ったのは蒸発器のファンが凍ったためです。霜取りは四十分かかり、矢印キーを二つ押すと始まります。',
        '霜取りは何分かかりますか',
      ],
      [
        '返品の決まり',
        '三十日以内に靴を返品したお客様には代金を返します。靴底がすり減ったものは商品券と交換します。',
        '靴を返品したい',
      ],
      [
        '望遠鏡の夜',
        '土星の環は八月の終わりに最もよく見えます。目が暗さに慣れるように赤いライトを持ってきてください。',
        '土星の環はいつ見えるか',
      ],
    ],
    others: [
      '二号棟の冷凍庫は春に点検されました。',
      '返品係は大阪の事務所にあります。',
      '望遠鏡は引退した先生からの贈り物です。',
    ],
  },
  {
    language: 'ko',
    answers: [
      [
        '냉동고 경보',
        '증발기 팬이 얼어서 경보가 울렸습니다. 제상은 사십 분이 걸리며 화살표 단추 두 개를 누르면 시작됩니다.',
        '증발기 제상 시간',
      ],
      [
        '반품 규정',
        '삼십 일 안에 신발을 돌려보낸 고객은 돈을 돌려받습니다. 밑창이 닳은 신발은 상품권으로 바꿔 줍니다.',
        '신발 반품',
      ],
      [
        '서울 지점',
        '서울특별시의 새 지점은 지하철역에서 걸어서 오 분 거리에 있고 토요일에도 문을 엽니다.',
        '서울 지점 토요일',
      ],
    ],
    others: [
      '이 공장의 냉동고는 봄에 점검을 받았습니다.',
      '반품 부서는 부산에 있습니다.',
      '새 지점의 직원은 모두 열 명입니다.',
    ],
  },
  {
    language: 'th',
    answers: [
      [
        'สัญญาณเตือนห้องเย็น',
        'สัญญาณเตือนดังเพราะพัดลมของเครื่องระเหยมีน้ำแข็งเกาะ การละลายน้ำแข็งใช้เวลาสี่สิบนาที',
        'การละลายน้ำแข็งใช้เวลากี่นาที',
      ],
      ['กฎการคืนสินค้า', 'ลูกค้าที่คืนรองเท้าในสามสิบวันจะได้เงินคืน พื้นสึกจะแลกเป็นบัตรกำนัล', 'คืนรองเท้าได้ไหม'],
      ['วันลาพักร้อน', 'วันลาพักร้อนที่ไม่ได้ใช้จะหมดอายุปลายเดือนมีนาคม', 'วันลาหมดอายุเมื่อไร'],
    ],
    others: ['ห้องเย็นได้รับการตรวจสอบในฤดูใบไม้ผลิ', 'แผนกคืนสินค้าอยู่ที่เชียงใหม่', 'คู่มือพนักงานมีสามสิบหน้า'],
  },
  {
    language: 'de',
    answers: [
      [
        'Kältemaschine',
        'Der Alarm im Kühlhaus ging los, weil der Lüfter vereist war. Das Abtauen dauert vierzig Minuten.',
        'vereiste Lüfter abtauen',
      ],
      [
        'Hausratversicherung',
        'Die Versicherung übernimmt Schäden an Häusern nach einem Sturm, wenn die Dächer vorher geprüft worden sind.',
        'Versicherungen für ein beschädigtes Haus',
      ],
      [
        'Resturlaub',
        'Nicht genommene Urlaubstage verfallen Ende März. Eltern behalten ihre Tage bis September.',
        'wann verfällt der Urlaub von Eltern',
      ],
    ],
    others: [
      'Das Kühlhaus wurde im Frühling ohne Befund geprüft.',
      'Das Dach der Halle wird im Sommer neu gestrichen.',
      'Die Personalabteilung erklärt den Vertrag am ersten Tag.',
    ],
  },
  {
    language: 'fr',
    answers: [
      [
        'Alarme du frigo',
        'L’alarme de la chambre froide s’est déclenchée car le ventilateur était gelé. Le dégivrage dure une heure.',
        'dégivrer les ventilateurs gelés',
      ],
      [
        'Écurie',
        'Les chevaux se reposent deux jours après chaque course et mangent du foin trois fois par jour.',
        'repos du cheval après les courses',
      ],
      [
        'Congés',
        'Les jours de congé non pris expirent à la fin du mois de mars, sauf pour les parents.',
        'quand un congé expire-t-il',
      ],
    ],
    others: [
      'La chambre froide a été inspectée au printemps.',
      'L’écurie a reçu une nouvelle porte en bois.',
      'Le service du personnel se trouve au deuxième étage.',
    ],
  },
  {
    language: 'es',
    answers: [
      [
        'Alarma de la cámara',
        'La alarma de la cámara fría sonó porque el ventilador estaba congelado. Descongelar tarda cuarenta minutos.',
        'ventiladores congelados',
      ],
      [
        'Facturas',
        'Las facturas de los proveedores se pagan dentro de treinta días; las atrasadas llevan un recargo.',
        'pagar una factura atrasada',
      ],
      [
        'Vacaciones',
        'Los días de vacaciones que no se toman caducan a finales de marzo.',
        'cuándo caduca un día de vacaciones',
      ],
    ],
    others: [
      'La cámara fría se revisó en primavera sin problemas.',
      'El proveedor de papel cambió de dirección.',
      'La oficina de personal abre a las nueve.',
    ],
  },
  {
    language: 'ru',
    answers: [
      [
        'Сигнал холодильника',
        'Сигнал сработал, потому что вентилятор покрылся льдом. Разморозка занимает сорок минут.',
        'разморозить вентиляторы',
      ],
      [
        'Расписание',
        'Расписание поездов меняется каждую осень, и последний поезд уходит в полночь.',
        'расписания последних поездов',
      ],
      [
        'Отпуск',
        'Неиспользованные дни отпуска сгорают в конце марта, кроме отпусков родителей.',
        'когда сгорает отпуск родителя',
      ],
    ],
    others: [
      'Холодильник проверили весной и не нашли ошибок.',
      'Вокзал покрасили прошлым летом.',
      'Отдел кадров находится на втором этаже.',
    ],
  },
  {
    language: 'ar',
    answers: [
      ['إنذار الثلاجة', 'انطلق الإنذار لأن المروحة تجمدت. تستغرق إذابة الجليد أربعين دقيقة.', 'إذابة جليد المروحة'],
      ['الحديقة', 'يلعب الولد في الحديقة كل يوم بعد المدرسة مع أصدقائه حتى المساء.', 'ولد حديقة مدرسة'],
      ['الإجازات', 'تنتهي أيام الإجازة غير المستعملة في نهاية شهر مارس.', 'متى تنتهي إجازة'],
    ],
    others: [
      'تم فحص الثلاجة في الربيع ولم توجد أخطاء.',
      'المدرسة الجديدة قريبة من السوق.',
      'مكتب الموظفين في الطابق الثاني.',
    ],
  },
];
