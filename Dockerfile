# docker build -t capbias . && docker run -p 8501:8501 -v capbias:/data capbias
FROM python:3.11-slim
# Java for METEOR and the PTB tokenizer.
RUN apt-get update && apt-get install -y --no-install-recommends default-jre-headless && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements.txt requirements.lock ./
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
ENV CAPBIAS_HOME=/data
VOLUME /data
EXPOSE 8501
HEALTHCHECK CMD python -c "import urllib.request as u; u.urlopen('http://localhost:8501/_stcore/health')"
CMD ["sh", "-c", "python -m capbias_core demo --if-empty && exec streamlit run app.py --server.address 0.0.0.0 --server.port 8501 --server.headless true"]
