QUESTIONS_TEMPLATE = '# {title}\n'
