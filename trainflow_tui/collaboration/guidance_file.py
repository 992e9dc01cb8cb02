GUIDANCE_TEMPLATE = '# {title}\n'
